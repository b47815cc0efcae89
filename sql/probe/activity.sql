-- The activity of each table: its scans and its changed rows. The tables of riops itself are left out.
select relid, activity
  from (select relid, schemaname, relname,
               coalesce(seq_scan, 0) + coalesce(idx_scan, 0) + n_tup_ins + n_tup_upd + n_tup_del as activity
          from pg_stat_user_tables) as each_table
 where activity > 0
   and schemaname <> 'riops_store'
   and not (schemaname = 'riops' and relname in ('dataset', 'run'))
 limit 10000
