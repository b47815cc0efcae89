create index k_{number} on {table} (k)
