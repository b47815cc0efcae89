-- The activity of each table since its statistics were reset. The tables of riops itself are left out.
select relid, coalesce(seq_scan, 0), coalesce(seq_tup_read, 0), coalesce(idx_scan, 0), n_tup_ins, n_tup_upd, n_tup_hot_upd,
       n_tup_del, vacuum_count + autovacuum_count, n_dead_tup
  from pg_stat_user_tables
 where coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd + n_tup_del > 0
   and schemaname <> 'riops_store'
   and not (schemaname = 'riops' and relname in ('dataset', 'run'))
 limit 10000
