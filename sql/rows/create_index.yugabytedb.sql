-- The table is still empty: no online backfill is needed.
create index nonconcurrently {table}_asc_mykey on riops.{table} (mykey asc){split}
