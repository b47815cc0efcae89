create index xid_{number} on {table} (id)
