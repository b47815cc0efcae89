select id from runs order by started_at desc, id desc limit 1
