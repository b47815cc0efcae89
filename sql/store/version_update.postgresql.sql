update riops_store.store_version set version = cast($1 as integer)
