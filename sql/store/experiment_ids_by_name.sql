select id from experiments where name = $1 order by created_at desc, id desc limit 1
