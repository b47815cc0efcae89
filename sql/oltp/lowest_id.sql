select least(coalesce(min(id), 0), 0) from {table}
