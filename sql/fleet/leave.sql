-- $3 are the seconds after which an agent without a heartbeat is lost: only the others can remove its row.
delete from riops_store.fleet_agent
 where fleet = $1
   and (token = $2 or heartbeat_at not between clock_timestamp() - make_interval(secs => $3::float8)
                                   and clock_timestamp() + make_interval(secs => $3::float8)
        and exists (select from riops_store.fleet where id = $1 and result is not null))
