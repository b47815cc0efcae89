select version from riops_store.store_version
