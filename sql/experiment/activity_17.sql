-- PostgreSQL 16 and 17: the same; the size of an operation is in op_bytes.
select coalesce(sum((coalesce(reads, 0) + coalesce(writes, 0) + coalesce(extends, 0)) * op_bytes), 0),
       case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end - '0/0'
  from pg_stat_io
