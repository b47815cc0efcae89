select blks_hit, blks_read, tup_returned, tup_fetched, tup_updated, xact_commit, xact_rollback, deadlocks,
       temp_files, temp_bytes
  from pg_stat_database where datname = current_database()
