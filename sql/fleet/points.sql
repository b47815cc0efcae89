-- An agent is lost after $2 seconds without a heartbeat. An interval does not wait for a lost agent, or for one that has sent its
-- last points.
select number, points, state = 'running' and heartbeat_at between clock_timestamp() - make_interval(secs => $2::float8)
                                                          and clock_timestamp() + make_interval(secs => $2::float8)
  from riops_store.fleet_agent where fleet = $1
