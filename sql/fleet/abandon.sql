-- A fleet all of whose agents have failed: no one is left to end it.
delete from riops_store.fleet
 where id = $1 and result is null
   and not exists (select from riops_store.fleet_agent agent
                    where agent.fleet = $1 and agent.state <> 'failed'
                      and agent.heartbeat_at between clock_timestamp() - make_interval(secs => $2::float8)
                                             and clock_timestamp() + make_interval(secs => $2::float8))
