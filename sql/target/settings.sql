-- Settings with which the sessions start and that differ from the default, whatever sets them (a file, the role, the
-- database, the connection string, PGOPTIONS), and settings needed to interpret the results of a benchmark; none
-- that may contain a password. The settings of this session alone (source session) do not apply to other sessions, which
-- start with reset_val. Among these settings, a unit other than 8kB means a time in milliseconds. The default of a setting
-- with a unit has another form than its value. A long value is shortened, with a digest of the whole one.
select name,
       case when length(value) > 200 then left(value, 160) || '... (' || left(md5(value), 8) || ')' else value end,
       case when unit is null then boot_val end
  from (select name, unit, boot_val,
               case when source <> 'session' or reset_val is null then current_setting(name)
                    when unit is null or reset_val = '0' then reset_val
                    when unit = '8kB' then (reset_val::bigint * 8)::text || 'kB'
                    when reset_val like '%000' and reset_val::bigint % 86400000 = 0 then reset_val::bigint / 86400000 || 'd'
                    when reset_val like '%000' and reset_val::bigint % 3600000 = 0 then reset_val::bigint / 3600000 || 'h'
                    when reset_val like '%000' and reset_val::bigint % 60000 = 0 then reset_val::bigint / 60000 || 'min'
                    when reset_val like '%000' then reset_val::bigint / 1000 || 's'
                    else reset_val || unit end as value
          from pg_settings
         where (source not in ('default', 'client', 'override', 'session')
                or source = 'client' and setting is distinct from boot_val
                or source = 'session' and reset_val is distinct from boot_val
                or name in ('shared_buffers', 'effective_cache_size', 'work_mem', 'maintenance_work_mem',
                            'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'max_wal_size',
                            'checkpoint_timeout', 'autovacuum', 'deadlock_timeout', 'max_connections', 'jit',
                            'io_method', 'data_checksums', 'track_io_timing', 'shared_preload_libraries',
                            'default_transaction_isolation', 'block_size', 'server_encoding', 'lc_collate',
                            'huge_pages_status', 'default_toast_compression', 'effective_io_concurrency',
                            'timing_clock_source'))
           and name not in ('data_directory', 'config_file', 'hba_file', 'ident_file',
                            'unix_socket_directories', 'port', 'external_pid_file', 'primary_conninfo',
                            'application_name', 'client_encoding', 'riops.previous_settings')
           and name !~ '(_command|conninfo|passphrase|password|passwd|secret|token|credential|key)') as settings
 union all
-- pg_settings does not list these two, on which privileges, row security and defaults depend. Their defaults: no role,
-- and the superuser of initdb.
select name, current_setting(name), null
  from (values ('role', 'none'), ('session_authorization', pg_get_userbyid(10)::text)) as own (name, standard)
 where current_setting(name) <> standard
 order by name
