-- The rows that are derived from the record of one run, in a table other than `runs`.
delete from {table} where run_id = $1
