-- Sets the end of the run: all agents together have breached threshold $2, and end in $3 seconds.
update riops_store.fleet set breached = $2, end_s = extract(epoch from clock_timestamp()) + $3::float8
 where id = $1 and breached is null
