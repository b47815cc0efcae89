select 1 from records where run_id = $1 for update
