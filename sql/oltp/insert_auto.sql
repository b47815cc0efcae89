insert into {table} (k, c, pad) values ($1, $2, $3)
