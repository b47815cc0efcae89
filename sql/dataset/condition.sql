-- The state of the tables of a dataset: bytes of tables and indexes (without the free space maps and visibility maps
-- that VACUUM adds), live and dead rows, updates, HOT updates, and when all tables were vacuumed and analyzed.
select coalesce(sum(pg_table_size(c.oid) - pg_relation_size(c.oid, 'fsm') - pg_relation_size(c.oid, 'vm')
         + (select coalesce(sum(pg_relation_size(i.indexrelid)), 0) from pg_index i where i.indrelid = c.oid)), 0)::bigint,
       coalesce(sum(s.n_live_tup), 0), coalesce(sum(s.n_dead_tup), 0),
       coalesce(sum(s.n_tup_upd), 0), coalesce(sum(s.n_tup_hot_upd), 0),
       to_char(min(greatest(s.last_vacuum, s.last_autovacuum)) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
       to_char(min(greatest(s.last_analyze, s.last_autoanalyze)) at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
  from unnest('{{tables}}'::text[]) as name
  join pg_class c on c.oid = to_regclass(name)
  left join pg_stat_user_tables s on s.relid = c.oid
