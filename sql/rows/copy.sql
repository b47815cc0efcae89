copy riops.{table} (mykey, scratch, filler) from stdin (format binary)
