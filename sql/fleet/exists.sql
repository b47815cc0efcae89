select to_regclass('riops_store.fleet_start') is not null
