select run_id, key, value from tags where run_id in ({ids}) order by run_id, key
