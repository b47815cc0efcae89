-- The last id before the first that is missing, from 1 on.
select coalesce(min(id), 0) from {table} as there
 where id > 0 and exists (select from {table} where id = 1)
   and not exists (select from {table} as next where next.id = there.id + 1)
