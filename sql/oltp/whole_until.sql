-- The last id before the first gap, counted from 1.
select coalesce(min(id), 0) from {table} as there
 where id > 0 and exists (select from {table} where id = 1)
   and not exists (select from {table} as next where next.id = there.id + 1)
