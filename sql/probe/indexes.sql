-- The indexes of these tables, with their sizes.
select n.nspname || '.' || c.relname, i.relname, i.oid, pg_relation_size(i.oid)
  from pg_index x join pg_class i on i.oid = x.indexrelid
  join pg_class c on c.oid = x.indrelid join pg_namespace n on n.oid = c.relnamespace
 where x.indrelid = any ('{{relids}}'::oid[])
 order by 1, 2
 limit 1000
