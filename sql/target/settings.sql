-- Settings that differ from the default, and those needed to interpret the results of a benchmark; none
-- that may contain a password. The default of a setting with a unit has another form than its value.
select name, current_setting(name), case when unit is null then boot_val end
  from pg_settings
 where (source not in ('default', 'client', 'override', 'session')
        or name in ('shared_buffers', 'effective_cache_size', 'work_mem', 'maintenance_work_mem',
                    'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'max_wal_size',
                    'checkpoint_timeout', 'autovacuum', 'deadlock_timeout', 'max_connections', 'jit', 'io_method',
                    'data_checksums', 'track_io_timing', 'shared_preload_libraries',
                    'default_transaction_isolation', 'block_size', 'server_encoding', 'lc_collate'))
   and name not in ('data_directory', 'config_file', 'hba_file', 'ident_file',
                    'unix_socket_directories', 'port', 'external_pid_file', 'primary_conninfo')
   and name !~ '(_command|conninfo|passphrase|password|passwd|secret|token|credential|key)'
 order by name
