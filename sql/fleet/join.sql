-- Replaces an agent that was lost.
insert into riops_store.fleet_agent (fleet, number, token, host) values ($1, $2::integer, $3, $4)
on conflict (fleet, number) do update
   set token = excluded.token, host = excluded.host, heartbeat_at = clock_timestamp(), stage = 0, state = 'running', run = null,
       error = null, points = null, record = null, agent = null
