-- Count, smallest, largest, sum and sum of squares (modulo a prime, so that they fit) of the keys:
-- those of 1 to n. Keys that are lost, doubled or exchanged for others change one of them.
select count(*), coalesce(min(mykey), 0), coalesce(max(mykey), 0),
       coalesce(sum(mykey), 0), coalesce(sum((mykey % 1000003) * (mykey % 1000003)), 0),
       coalesce(sum(scratch), 0)
  from riops.{table}
