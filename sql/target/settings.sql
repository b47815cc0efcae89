-- Settings that differ from the default, and those needed to interpret the results of a benchmark; none
-- that may contain a password. The default of a setting with a unit has another form than its value. Settings that riops
-- has set for its own connection have the value of other sessions; of these, those with a unit are times in milliseconds.
select name,
       case when source <> 'session' then current_setting(name)
            when unit is null or reset_val = '0' then reset_val
            when reset_val like '%000' and reset_val::bigint % 86400000 = 0 then reset_val::bigint / 86400000 || 'd'
            when reset_val like '%000' and reset_val::bigint % 3600000 = 0 then reset_val::bigint / 3600000 || 'h'
            when reset_val like '%000' and reset_val::bigint % 60000 = 0 then reset_val::bigint / 60000 || 'min'
            when reset_val like '%000' then reset_val::bigint / 1000 || 's'
            else reset_val || unit end,
       case when unit is null then boot_val end
  from pg_settings
 where (source not in ('default', 'client', 'override', 'session')
        or source = 'session' and reset_val is distinct from boot_val
        or name in ('shared_buffers', 'effective_cache_size', 'work_mem', 'maintenance_work_mem',
                    'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'max_wal_size',
                    'checkpoint_timeout', 'autovacuum', 'deadlock_timeout', 'max_connections', 'jit', 'io_method',
                    'data_checksums', 'track_io_timing', 'shared_preload_libraries',
                    'default_transaction_isolation', 'block_size', 'server_encoding', 'lc_collate'))
   and name not in ('data_directory', 'config_file', 'hba_file', 'ident_file',
                    'unix_socket_directories', 'port', 'external_pid_file', 'primary_conninfo')
   and name !~ '(_command|passphrase|password|secret|key)'
 order by name
