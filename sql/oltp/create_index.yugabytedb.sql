create index nonconcurrently k_{number} on {table} (k hash)
