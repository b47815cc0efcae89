-- Settings of the transaction that samples the physical order: index scans only, and no longer than the timeout.
-- The join skips settings that older servers do not have.
select set_config(name, value, true)
  from (values ('statement_timeout', '{timeout}'), ('enable_seqscan', 'off'), ('enable_bitmapscan', 'off'),
               ('enable_hashjoin', 'off'), ('enable_mergejoin', 'off'), ('enable_nestloop', 'on'),
               ('enable_indexscan', 'on'), ('jit', 'off'), ('max_parallel_workers_per_gather', '0'))
       as wanted(name, value)
  join pg_settings using (name)
