-- PostgreSQL 18 and later: the same.
select coalesce(sum(fsyncs), 0) from pg_stat_io where object = 'wal'
