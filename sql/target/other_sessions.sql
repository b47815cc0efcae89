-- Clients of the server besides riops.
select distinct coalesce(nullif(application_name, ''), 'a session') || ' of ' || coalesce(usename, 'an unknown role')
  from pg_stat_activity
 where backend_type = 'client backend' and pid <> pg_backend_pid() and application_name not like 'riops%'
 order by 1
 limit 5
