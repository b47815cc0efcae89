-- PostgreSQL 18 and later: block operations on tables and indexes by all client sessions and their parallel
-- workers.
select coalesce(sum(hits), 0), coalesce(sum(reads), 0), coalesce(sum(writes), 0),
       coalesce(sum(extends), 0), coalesce(sum(evictions), 0),
       coalesce(sum(read_bytes), 0), coalesce(sum(write_bytes), 0), coalesce(sum(extend_bytes), 0)
  from pg_stat_io where backend_type in ('client backend', 'background worker') and object = 'relation'
