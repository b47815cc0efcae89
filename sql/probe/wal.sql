-- PostgreSQL 14 and later; not available on a standby. wal_bytes leaves out padding and page headers, which are written too: 4%
-- of small records.
select wal_records, wal_fpi, pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') from pg_stat_wal
