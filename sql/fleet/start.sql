insert into riops_store.fleet_start (fleet, stage, start_s)
values ($1, $2::integer, extract(epoch from clock_timestamp())::float8 + $3::float8)
on conflict do nothing
