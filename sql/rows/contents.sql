-- Count, minimum, maximum, sum and sum of squares (modulo a prime, to avoid an overflow) of the keys, which
-- must be 1 to n. A lost, duplicated or replaced key changes at least one of these numbers.
select count(*), coalesce(min(mykey), 0), coalesce(max(mykey), 0),
       coalesce(sum(mykey), 0), coalesce(sum((mykey % 1000003) * (mykey % 1000003)), 0),
       coalesce(sum(scratch), 0)
  from riops.{table}
