copy {table} (id, k, c, pad) from stdin (format binary)
