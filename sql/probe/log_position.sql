-- Current WAL insert position, in bytes; not available on a standby.
select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')
