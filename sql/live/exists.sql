select to_regclass('riops_store.live_runs') is not null and to_regclass('riops_store.live_events') is not null
