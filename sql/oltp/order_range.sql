select c from {table} where id between $1 and $2 order by c
