-- One transaction per file instead of one per 20,000 rows, the default.
copy riops.{table} (id, f1, f2, f3, f4) from {file} with (format csv, rows_per_transaction 0)
