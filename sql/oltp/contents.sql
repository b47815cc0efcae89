-- All rows; those of the load, unless they were deleted; the sum of k; rows whose texts have another
-- length than sysbench gives them.
select count(*), count(*) filter (where id between 1 and {size}), coalesce(sum(k), 0),
       count(*) filter (where length(c) <> 119 or length(pad) <> 59)
  from {table}
