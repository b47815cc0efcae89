delete from riops_store.live_runs where heartbeat_at < now() - interval '1 hour'
