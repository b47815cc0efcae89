update riops_store.live_runs set heartbeat_at = now() where id = $1
