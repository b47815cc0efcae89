select id from runs where id like $1 || '%' or id like '%' || $1 order by id
