with gone as (delete from riops_store.live_events where run_id = $1)
update riops_store.live_runs set state = $2, state_number = $3::bigint, heartbeat_at = now() where id = $1
