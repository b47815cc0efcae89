select to_regclass('riops_store.store_version') is not null
