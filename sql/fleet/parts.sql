select number, host, state, error, record, agent,
       extract(epoch from clock_timestamp() - heartbeat_at)::float8, run
  from riops_store.fleet_agent where fleet = $1 order by number
