with alive as (update riops_store.live_runs set heartbeat_at = now() where id = $1)
insert into riops_store.live_events (run_id, number, event) values ($1, $2::bigint, $3)
