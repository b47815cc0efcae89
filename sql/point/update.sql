update riops.{table} set f1 = $2, f2 = $3, f3 = $4, f4 = $5 where id = $1
