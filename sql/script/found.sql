-- The tables of pgbench in a schema: how many have its columns, how many were created by riops, the fill factor, number and
-- kind of partitions of the accounts, whether any is unlogged, the number of foreign keys of the history, and the identity
-- of the accounts.
with tables as (
  select c.oid, c.relname, c.reloptions, c.relpersistence
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
   where n.nspname = {schema} and c.relkind in ('r', 'p')
     and (c.relname::text, (select string_agg(a.attname, ' ' order by a.attnum)
                              from pg_attribute a
                             where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped)) in (
           ('pgbench_history', 'tid bid aid delta mtime filler'),
           ('pgbench_tellers', 'tid bid tbalance filler'),
           ('pgbench_accounts', 'aid bid abalance filler'),
           ('pgbench_branches', 'bid bbalance filler')))
select (select count(*) from tables),
       (select count(*) from tables where obj_description(oid, 'pg_class') = 'riops dataset script'),
       coalesce((select option_value
                   from tables, pg_options_to_table(reloptions)
                  where relname = 'pgbench_branches' and option_name = 'fillfactor'), '100'),
       (select count(*) from pg_inherits i, tables t where i.inhparent = t.oid and t.relname = 'pgbench_accounts'),
       (select p.partstrat from pg_partitioned_table p, tables t where p.partrelid = t.oid),
       (select bool_or(relpersistence = 'u') from tables),
       (select count(*) from pg_constraint f, tables t
         where f.contype = 'f' and f.conrelid = t.oid and t.relname = 'pgbench_history'),
       (select oid from tables where relname = 'pgbench_accounts')
