-- PostgreSQL 18 and later: bytes that the server has read and written, and the position of the WAL in bytes.
select coalesce(sum(read_bytes), 0) + coalesce(sum(write_bytes), 0) + coalesce(sum(extend_bytes), 0),
       case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end - '0/0'
  from pg_stat_io
