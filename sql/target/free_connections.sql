-- Number of further connections that the server, the role and the database permit this session.
select least(s.most - s.used,
             case when not r.rolsuper then nullif(r.rolconnlimit, -1) end - (select count(*) from pg_stat_activity where usename = r.rolname),
             case when not r.rolsuper then nullif(d.datconnlimit, -1) end - (select count(*) from pg_stat_activity where datname = d.datname))
  from pg_roles r, pg_database d,
       lateral (select current_setting('max_connections')::int
                       - case when r.rolsuper then 0
                              else current_setting('superuser_reserved_connections')::int
                                   + coalesce(current_setting('reserved_connections', true)::int, 0) end as most,
                       (select count(*) from pg_stat_activity where backend_type = 'client backend') as used) s
 where r.rolname = session_user and d.datname = current_database()
