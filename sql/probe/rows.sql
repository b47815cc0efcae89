-- Row versions, runs of VACUUM and ANALYZE, and the sizes of the tables and of their indexes.
select coalesce(sum(n_tup_upd), 0), coalesce(sum(n_tup_hot_upd), 0), coalesce(sum(n_dead_tup), 0),
       coalesce(sum(vacuum_count + autovacuum_count), 0), coalesce(sum(analyze_count + autoanalyze_count), 0),
       coalesce(sum(pg_table_size(relid)), 0), coalesce(sum(pg_indexes_size(relid)), 0)
  from pg_stat_user_tables
 where relid in (select to_regclass(name)::oid from unnest('{{tables}}'::text[]) as name)
