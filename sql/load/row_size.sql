select pg_column_size(t.*) from riops.{table} as t limit 1
