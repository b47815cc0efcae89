update records set record = $2 where run_id = $1
