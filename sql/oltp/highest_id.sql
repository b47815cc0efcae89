select greatest(coalesce(max(id), 0), 0) from {table}
