-- PostgreSQL 19 and later: the bytes of the full-page images.
select wal_fpi_bytes::bigint from pg_stat_wal
