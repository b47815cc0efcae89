delete from experiments where id = $1
