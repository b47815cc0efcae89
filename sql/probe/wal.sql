-- PostgreSQL 14 and later.
select wal_records, wal_fpi, wal_bytes from pg_stat_wal
