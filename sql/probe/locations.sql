-- The tablespaces of temporary objects and of these tables with their partitions, indexes and TOAST tables; the
-- tablespace of new tables if none of them exists. Kind, name, and location, which is empty for the data
-- directory.
with named as (
  select to_regclass(name)::oid as oid from unnest('{{tables}}'::text[]) as name
), tables as (
  select oid from named
   union
  select tree.relid from named, pg_partition_tree(named.oid) as tree
), toasted as (
  select oid from tables
   union
  select reltoastrelid from pg_class where oid in (select oid from tables) and reltoastrelid <> 0
), relations as (
  select oid from toasted
   union
  select indexrelid from pg_index where indrelid in (select oid from toasted)
), default_tablespace as (
  select dattablespace as oid from pg_database where datname = current_database()
), temporary as (
  select oid from pg_tablespace
   where spcname in (select btrim(name, ' "')
                       from unnest(string_to_array(current_setting('temp_tablespaces'), ',')) as name)
), used as (
  select 'tables' as kind, coalesce(nullif(reltablespace, 0), (select oid from default_tablespace)) as oid
    from pg_class where oid in (select oid from relations) and relkind in ('r', 'i', 't', 'm')
   union
  select 'tables', oid from default_tablespace where not exists (select from named where oid is not null)
   union
  select 'temporary', oid from temporary
   union
  select 'temporary', oid from default_tablespace where not exists (select from temporary)
)
select kind, spcname, pg_tablespace_location(t.oid)
  from used join pg_tablespace t using (oid)
 order by kind, spcname
