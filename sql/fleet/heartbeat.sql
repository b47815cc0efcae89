update riops_store.fleet_agent set heartbeat_at = clock_timestamp(), points = coalesce($3, points)
 where fleet = $1 and token = $2
returning (select is_interrupted from riops_store.fleet where id = $1),
          (select threshold from riops_store.fleet_breach where fleet = $1),
          (select end_s from riops_store.fleet_breach where fleet = $1)
