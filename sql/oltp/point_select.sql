select c from {table} where id = $1
