-- Fleets whose agents are all lost; if the name $2 is given, only this fleet. An agent is lost after $1 seconds without a
-- heartbeat, or after $3 seconds if the fleet has ended. A heartbeat in the future is as old as it is far away.
delete from riops_store.fleet
 where ($2::text is null or name = $2)
   and not exists (select from riops_store.fleet_agent agent,
                          make_interval(secs => case when result is null then $1::float8 else $3::float8 end) age
                    where agent.fleet = fleet.id
                      and agent.heartbeat_at between clock_timestamp() - age and clock_timestamp() + age)
