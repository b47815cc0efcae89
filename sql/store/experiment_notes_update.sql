update experiments set notes = $2 where id = $1 and notes = $3 returning id
