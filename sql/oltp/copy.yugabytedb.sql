-- One transaction for the batch, not one for each 20,000 rows.
copy {table} (id, k, c, pad) from stdin with (format binary, rows_per_transaction 0)
