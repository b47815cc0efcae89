select id from {table} where id = $1
