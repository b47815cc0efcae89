create index {table}_asc_mykey on riops.{table} (mykey asc)
