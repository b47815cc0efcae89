delete from riops_store.live_runs where id = $1
