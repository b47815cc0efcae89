-- $2 are the seconds after which an agent without a heartbeat is lost: an interval does not wait for it, or for one that has sent
-- its last ones.
select number, points, state = 'running' and heartbeat_at between clock_timestamp() - make_interval(secs => $2::float8)
                                                          and clock_timestamp() + make_interval(secs => $2::float8)
  from riops_store.fleet_agent where fleet = $1
