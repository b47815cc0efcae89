-- One transaction for the batch, not one for each 20,000 rows.
copy riops.{table} (id, f1, f2, f3, f4) from stdin with (rows_per_transaction 0)
