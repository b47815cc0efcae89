with updated as (
  update riops.{table} set scratch = scratch + 1
   where mykey between $1 and $2 returning 1, scratch
) select count(*), max(scratch) from updated
