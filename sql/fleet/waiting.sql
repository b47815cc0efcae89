-- The plan of a fleet that waits for agent $2 and can still start.
select plan from riops_store.fleet
 where name = $1 and result is null
   and not exists (select from riops_store.fleet_start start where start.fleet = fleet.id)
   and exists (select from riops_store.fleet_agent first
                where first.fleet = fleet.id and number = 0 and state = 'running'
                  and heartbeat_at between clock_timestamp() - make_interval(secs => $3::float8)
                                   and clock_timestamp() + make_interval(secs => $3::float8))
   and not exists (select from riops_store.fleet_agent failed
                    where failed.fleet = fleet.id and number = $2::integer and state = 'failed')
