insert into riops.{table} (id, f1, f2, f3, f4) select * from unnest($1, $2, $3, $4, $5)
