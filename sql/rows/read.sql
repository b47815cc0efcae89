select count(*), max(scratch) from riops.{table} where mykey between $1 and $2
