select c from {table} limit $1
