-- Ids that differ, their smallest and largest.
select count(*), coalesce(min(id), 0), coalesce(max(id), 0)
  from (select distinct id from riops.{table}) as ids
