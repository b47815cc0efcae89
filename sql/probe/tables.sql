-- Block accesses to the dataset's tables and to their indexes.
select coalesce(sum(heap_blks_hit), 0), coalesce(sum(heap_blks_read), 0),
       coalesce(sum(idx_blks_hit), 0), coalesce(sum(idx_blks_read), 0)
  from pg_statio_user_tables
 where relid in (select to_regclass(name)::oid from unnest('{{tables}}'::text[]) as name)
