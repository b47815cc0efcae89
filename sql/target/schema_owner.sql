-- A schema and, for a superuser, the name of a role with fewer rights that could execute code as this one: as the owner of
-- the schema, of a table or routine in it, or of the function of a trigger.
select nspname, (
    select min(owner.rolname)
      from pg_roles owner, pg_roles own
     where own.rolname = current_user and own.rolsuper and not owner.rolsuper
       and owner.oid in (select nspowner
                          union all
                         select relowner from pg_class where relnamespace = n.oid
                          union all
                         select proowner from pg_proc where pronamespace = n.oid
                          union all
                         select proowner
                           from pg_class r join pg_trigger t on t.tgrelid = r.oid and not t.tgisinternal
                           join pg_proc p on p.oid = t.tgfoid
                          where r.relnamespace = n.oid))
  from pg_namespace n
 where nspname = $1
