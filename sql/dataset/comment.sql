-- The comment of a table, which may be empty.
select case when relkind in ('r', 'p') then coalesce(obj_description(oid, 'pg_class'), '') else 'not a table' end
  from pg_class
 where oid = to_regclass($1)
