select id from {table} where id like $1 || '%' or id like '%' || $1 order by id
