-- The size of the tables of pgbench in a schema, with their partitions.
select coalesce(sum(pg_total_relation_size(part.relid)), 0)
  from unnest(array['pgbench_history', 'pgbench_tellers', 'pgbench_accounts', 'pgbench_branches']) as name,
       pg_partition_tree(to_regclass(quote_ident({schema}) || '.' || name)) as part
