delete from {table} where id = $1
