-- Number of distinct ids, smallest and largest id.
select count(*), coalesce(min(id), 0), coalesce(max(id), 0)
  from (select distinct id from {source}) as ids
