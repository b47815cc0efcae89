delete from riops_store.live_runs where heartbeat_at not between now() - interval '1 hour' and now() + interval '1 hour'
