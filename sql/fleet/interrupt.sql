update riops_store.fleet set is_interrupted = true where id = $1
