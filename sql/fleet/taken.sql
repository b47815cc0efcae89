select number, host, heartbeat_at between clock_timestamp() - make_interval(secs => $2::float8)
                                  and clock_timestamp() + make_interval(secs => $2::float8)
  from riops_store.fleet_agent where fleet = $1
