-- Sets the end of the run: all agents together have breached threshold $2, and end in $3 seconds.
insert into riops_store.fleet_breach (fleet, threshold, end_s)
select id, $2, extract(epoch from clock_timestamp()) + $3::float8 from riops_store.fleet where id = $1
on conflict (fleet) do nothing
