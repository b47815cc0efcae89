update riops_store.fleet set result = $2 where id = $1 and result is null
