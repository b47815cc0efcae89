select id from runs order by id
