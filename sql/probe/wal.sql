-- From PostgreSQL 14 on.
select wal_records, wal_fpi, wal_bytes from pg_stat_wal
