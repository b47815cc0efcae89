-- The comment of a qualified table, which may be empty. The role may lack the privilege to use the schema.
select case when relkind in ('r', 'p') then coalesce(obj_description(c.oid, 'pg_class'), '') else 'not a table' end
  from pg_class c join pg_namespace n on n.oid = relnamespace
 where n.nspname = (parse_ident($1))[1]::name and c.relname = (parse_ident($1))[2]::name
