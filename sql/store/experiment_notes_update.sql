update experiments set notes = $2 where id = $1
