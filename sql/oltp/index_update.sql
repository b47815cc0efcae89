update {table} set k = k + 1 where id = $1
