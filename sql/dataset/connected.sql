-- The sessions that are connected to a database, the oldest first.
select 'process ' || concat_ws(', ', pid, nullif(application_name, ''), 'user ' || usename,
                               'connected since ' || to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
  from pg_stat_activity
 where datname = {name} and pid <> pg_backend_pid()
 order by backend_start, pid
 limit 5
