-- PostgreSQL 15 and earlier: blocks written by the checkpointer, the background writer and sessions. Reads by
-- sessions are counted by database.
select (buffers_checkpoint + buffers_clean + buffers_backend) * current_setting('block_size')::bigint
         + (select coalesce(sum(blks_read), 0) from pg_stat_database) * current_setting('block_size')::bigint,
       case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_insert_lsn() end - '0/0'
  from pg_stat_bgwriter
