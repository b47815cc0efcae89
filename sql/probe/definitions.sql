-- What defines these tables, a row for each part: columns, indexes, constraints, triggers and options; with the sizes of the
-- table, of its indexes and of its TOAST table. A long definition is shortened, with a digest of the whole one.
with wanted as (
  select c.oid, n.nspname || '.' || c.relname as name, c.relkind, c.reloptions, c.relpersistence, c.reltoastrelid
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
   where c.oid = any ('{{relids}}'::oid[])),
part as (
  select attrelid as oid, 'column ' || attname as part,
         format_type(atttypid, atttypmod) || case when attnotnull then ' not null' else '' end as definition
    from pg_attribute
   where attrelid = any ('{{relids}}'::oid[]) and attnum > 0 and not attisdropped
  union all
  select indrelid, 'index ' || c.relname,
         regexp_replace(pg_get_indexdef(indexrelid), '^CREATE (UNIQUE )?INDEX .* USING ', '\1')
         || case when indisvalid then '' else ' (not valid)' end
    from pg_index join pg_class c on c.oid = indexrelid
   where indrelid = any ('{{relids}}'::oid[])
  union all
  select conrelid, 'constraint ' || conname, pg_get_constraintdef(oid)
    from pg_constraint
   where conrelid = any ('{{relids}}'::oid[]) and contype in ('f', 'c', 'x')
  union all
  select confrelid, 'foreign key ' || conname || ' of ' || conrelid::regclass, pg_get_constraintdef(oid)
    from pg_constraint
   where confrelid = any ('{{relids}}'::oid[]) and contype = 'f'
  union all
  select tgrelid, 'trigger ' || tgname,
         regexp_replace(pg_get_triggerdef(t.oid), '^CREATE (CONSTRAINT )?TRIGGER \S+ ', '')
         || case tgenabled when 'D' then ' (disabled)' else '' end || ' (' || left(md5(prosrc), 8) || ')'
    from pg_trigger t join pg_proc p on p.oid = tgfoid
   where tgrelid = any ('{{relids}}'::oid[]) and not tgisinternal
  union all
  select oid, 'option ' || split_part(entry, '=', 1), substr(entry, strpos(entry, '=') + 1)
    from wanted, unnest(reloptions) as entry
  union all
  select oid, 'persistence', 'unlogged' from wanted where relpersistence = 'u')
select name, part, case when length(definition) > 120 then left(definition, 100) || '... (' || left(md5(definition), 8) || ')'
                        else definition end,
       pg_table_size(wanted.oid), pg_indexes_size(wanted.oid),
       case when reltoastrelid <> 0 then pg_table_size(reltoastrelid) end, wanted.oid
  from wanted join part using (oid)
 order by name, part
 limit 2000
