-- How often each index was scanned since its statistics were reset.
select indexrelid, idx_scan from pg_stat_user_indexes where idx_scan > 0 limit 10000
