-- The tables that riops created for a workload, in the schema of the dataset, which defaults to riops. Partitions belong
-- to their table.
select format('%I.%I', n.nspname, c.relname)
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p') and not c.relispartition
   and obj_description(c.oid, 'pg_class') = $1
   and (n.nspname = 'riops'
        or n.nspname = (select parameters::json ->> 'schema' from riops.dataset where workload = $2))
 order by 1
