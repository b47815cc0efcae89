-- Sessions that hold the locks for which sessions of this run wait: whether they belong to it, their application, their state,
-- and for how many of at most 8 waiting sessions. If such a session waits itself, the query continues with its blockers.
with recursive chain (waiting, pid, depth) as (
    (select a.pid, a.pid, 0 from pg_stat_get_activity(null) as a
      where a.application_name = current_setting('application_name') and a.wait_event_type = 'Lock' limit 8)
    union
    select c.waiting, b.pid, c.depth + 1
      from chain as c, unnest(pg_blocking_pids(c.pid)) as b (pid)
     where c.depth < 4)
select a.application_name = current_setting('application_name'),
       coalesce(nullif(a.application_name, ''), a.backend_type), coalesce(a.state, ''),
       count(distinct c.waiting)
  from chain as c join pg_stat_get_activity(null) as a on a.pid = c.pid
 where c.depth > 0 and cardinality(pg_blocking_pids(c.pid)) = 0
 group by 1, 2, 3
