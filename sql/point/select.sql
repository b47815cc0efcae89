select f1, f2, f3, f4 from riops.{table} where id = $1
