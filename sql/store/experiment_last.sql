select id from experiments order by created_at desc, id desc limit 1
