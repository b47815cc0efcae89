-- The comment of a table, and the name of its owner if that role could execute code as this one: with triggers, rules
-- or policies of the table, although it has fewer rights.
select case when relkind in ('r', 'p') then coalesce(obj_description(relation.oid, 'pg_class'), '')
            else 'not a table' end,
       (select owner.rolname from pg_roles owner, pg_roles own
         where owner.oid = relowner and own.rolname = current_user and own.rolsuper and not owner.rolsuper)
  from pg_class relation
 where relation.oid = to_regclass($1)
