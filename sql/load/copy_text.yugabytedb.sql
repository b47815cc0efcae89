-- One transaction per batch instead of one per 20,000 rows, the default.
copy riops.{table} (id, f1, f2, f3, f4) from stdin with (rows_per_transaction 0)
