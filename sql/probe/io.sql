-- From PostgreSQL 16 on: what all sessions of clients did with blocks of tables and indexes.
select coalesce(sum(hits), 0), coalesce(sum(reads), 0), coalesce(sum(writes), 0),
       coalesce(sum(extends), 0), coalesce(sum(evictions), 0)
  from pg_stat_io where backend_type = 'client backend' and object = 'relation'
