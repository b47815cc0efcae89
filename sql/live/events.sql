select number, event from riops_store.live_events where run_id = $1 and number > $2::bigint order by number
