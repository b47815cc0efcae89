-- A table of riops and an object that riops did not create, which would be dropped with it or would lose it: a
-- partition, a child, a parent, or a sequence that a column owns.
with own as (
  select c.oid, c.relname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.relkind in ('r', 'p') and obj_description(c.oid, 'pg_class') = $1
     and (n.nspname = 'riops'
          or n.nspname = (select parameters::json ->> 'schema' from riops.dataset where workload = $2))
), attached as (
  select inhparent as own, inhrelid as object from pg_inherits
   union all
  select inhrelid, inhparent from pg_inherits
   union all
  select refobjid, sequence.oid
    from pg_depend join pg_class sequence on sequence.oid = objid and sequence.relkind = 'S'
    join pg_attribute on attrelid = refobjid and attnum = refobjsubid
    join own on own.oid = refobjid
   where classid = 'pg_class'::regclass and refclassid = 'pg_class'::regclass and deptype = 'a'
     and sequence.relname <> own.relname || '_' || attname || '_seq'
)
select own::regclass, object::regclass
  from attached
 where own in (select oid from own) and object not in (select oid from own)
   and (select relkind from pg_class where oid = object) in ('r', 'p', 'f', 'S')
 order by 1, 2
 limit 1
