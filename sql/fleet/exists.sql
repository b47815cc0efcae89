select to_regclass('riops_store.fleet_breach') is not null
