select count(*), max(mykey) from riops.{table} where mykey between $1 and $2
