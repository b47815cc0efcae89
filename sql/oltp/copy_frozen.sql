-- In the transaction that has emptied the table: the rows need no VACUUM to be frozen.
copy {table} (id, k, c, pad) from stdin (format binary, freeze)
