-- Sequential scans and index scans of each table.
select relname, sum(coalesce(seq_scan, 0)), sum(coalesce(idx_scan, 0))
  from pg_stat_user_tables
 group by relname
having sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0)) > 0
 limit 10000
