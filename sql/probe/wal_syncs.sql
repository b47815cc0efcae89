-- PostgreSQL 14 to 17: how often WAL files were synchronized.
select wal_sync from pg_stat_wal
