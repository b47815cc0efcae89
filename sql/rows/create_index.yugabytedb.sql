-- While the table is empty there is nothing to fill in online.
create index nonconcurrently {table}_asc_mykey on riops.{table} (mykey asc){split}
