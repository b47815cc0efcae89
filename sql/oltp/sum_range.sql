select sum(k) from {table} where id between $1 and $2
