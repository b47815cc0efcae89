-- Count, smallest, largest and sum of the keys prove together that they are exactly 1 to n.
select count(*), coalesce(min(mykey), 0), coalesce(max(mykey), 0),
       coalesce(sum(mykey), 0), coalesce(sum(scratch), 0)
  from riops.{table}
