-- An agent is lost after $3 seconds without a heartbeat: only the other agents can remove its row.
delete from riops_store.fleet_agent
 where fleet = $1
   and (token = $2 or heartbeat_at not between clock_timestamp() - make_interval(secs => $3::float8)
                                   and clock_timestamp() + make_interval(secs => $3::float8)
        and exists (select from riops_store.fleet where id = $1 and result is not null))
