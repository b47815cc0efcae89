-- One transaction per batch instead of one per 20,000 rows, the default.
copy {table} (id, k, c, pad) from stdin with (format binary, rows_per_transaction 0)
