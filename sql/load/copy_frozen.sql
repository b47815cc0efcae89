copy riops.{table} (id, f1, f2, f3, f4) from stdin with (format binary, freeze)
