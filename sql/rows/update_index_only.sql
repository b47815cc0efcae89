with updated as (
  update riops.{table} set mykey = mykey
   where mykey between $1 and $2 returning 1, mykey
) select count(*), max(mykey) from updated
