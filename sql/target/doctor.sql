-- Settings that affect the results of a benchmark, in the units of pg_settings. Settings that riops has set for its own
-- connection have the value of other sessions.
select name, case when source = 'session' then reset_val else setting end, coalesce(unit, ''),
       case when source = 'session' and reset_val is not distinct from boot_val then 'default' else source end
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
