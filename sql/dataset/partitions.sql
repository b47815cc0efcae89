-- The partitions of a table that was just created.
select format('%I.%I', nspname, relname)
  from pg_inherits
  join pg_class partition on partition.oid = inhrelid
  join pg_namespace on pg_namespace.oid = relnamespace
 where inhparent = to_regclass($1)
 order by 1
