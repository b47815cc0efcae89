insert into {table} (id, k, c, pad) values ($1, $2, $3, $4)
