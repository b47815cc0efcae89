insert into riops_store.live_runs (id, state, state_number, heartbeat_at) values ($1, $2, 0, now())
