select number, host, state, error, record, agent,
       case when isfinite(heartbeat_at) then extract(epoch from clock_timestamp() - heartbeat_at)::float8 end, run
  from riops_store.fleet_agent where fleet = $1 order by number
