-- The sessions that hold an advisory lock of riops in this database, the oldest first. Without the privilege to
-- read the statistics of other roles, only process and role are visible.
select 'process ' || concat_ws(', ', lock.pid, nullif(session.application_name, ''),
                               'user ' || session.usename,
                               'connected since ' || to_char(session.backend_start, 'YYYY-MM-DD HH24:MI:SS TZ'))
  from pg_locks lock left join pg_stat_activity session on session.pid = lock.pid
 where lock.locktype = 'advisory' and lock.granted and lock.objsubid = 2
   and lock.database = (select oid from pg_database where datname = current_database())
   and lock.classid = {space}
   and lock.objid::bigint = (hashtext({name})::bigint & 4294967295)
   and lock.pid <> pg_backend_pid()
 order by session.backend_start, lock.pid
 limit 5
