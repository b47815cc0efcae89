with beat as (
  update riops_store.fleet_agent set heartbeat_at = clock_timestamp(), points = coalesce($3, points)
   where fleet = $1 and token = $2 returning fleet)
select is_interrupted, breached, end_s from beat join riops_store.fleet on id = beat.fleet
