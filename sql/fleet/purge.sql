-- Fleets of which no agent lives: $1 are the seconds without a heartbeat; only those with the name $2, if it is given.
delete from riops_store.fleet
 where ($2::text is null or name = $2)
   and not exists (select from riops_store.fleet_agent agent
                    where agent.fleet = fleet.id
                      and agent.heartbeat_at > clock_timestamp() - make_interval(secs => $1::float8))
