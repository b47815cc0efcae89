select id, state_number from riops_store.live_runs
 where heartbeat_at between now() - make_interval(secs => $1::float8) and now() + make_interval(secs => $1::float8)
