update {table} set c = $1 where id = $2
