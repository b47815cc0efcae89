-- In parts: a message of the server has at most 16 MiB.
select substr(record, cast($2 as integer), cast($3 as integer)) from records where run_id = $1
