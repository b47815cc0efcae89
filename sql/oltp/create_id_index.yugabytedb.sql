create index nonconcurrently xid_{number} on {table} (id {order})
