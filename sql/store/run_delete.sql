delete from runs where id = $1
