-- PostgreSQL 16 and 17: the same; the size of an operation is in op_bytes.
select coalesce(sum(hits), 0), coalesce(sum(reads), 0), coalesce(sum(writes), 0),
       coalesce(sum(extends), 0), coalesce(sum(evictions), 0),
       coalesce(sum(reads * op_bytes), 0), coalesce(sum(writes * op_bytes), 0),
       coalesce(sum(extends * op_bytes), 0)
  from pg_stat_io where backend_type in ('client backend', 'background worker') and object = 'relation'
