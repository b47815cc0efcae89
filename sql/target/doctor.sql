-- Settings that affect the results of a benchmark, in the units of pg_settings.
select name, setting, coalesce(unit, ''), source
  from pg_settings
 where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'autovacuum',
                'max_wal_size', 'checkpoint_timeout', 'checkpoint_completion_target',
                'max_connections', 'superuser_reserved_connections', 'track_io_timing', 'jit',
                'log_statement', 'log_min_duration_statement', 'data_checksums',
                'debug_assertions', 'archive_mode', 'default_transaction_read_only',
                'statement_timeout', 'idle_in_transaction_session_timeout', 'lock_timeout',
                'shared_preload_libraries', 'default_transaction_isolation', 'huge_pages', 'huge_pages_status',
                'random_page_cost', 'effective_io_concurrency', 'wal_compression',
                'synchronous_standby_names')
 order by name
