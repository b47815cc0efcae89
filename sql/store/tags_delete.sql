delete from tags where run_id = $1
