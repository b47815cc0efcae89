-- The transactions that wrote the current versions of a range of rows, with the first and last key of each.
select min(mykey), max(mykey), xmin::text::bigint
  from riops.{table} where mykey between {first} and {last} group by 3
