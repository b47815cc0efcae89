-- PostgreSQL 19 and later: waits for locks that took longer than deadlock_timeout, their time in milliseconds, and locks of
-- tables that did not fit into the fast path of a session.
select coalesce(sum(waits), 0)::bigint, coalesce(sum(wait_time), 0)::bigint, coalesce(sum(fastpath_exceeded), 0)::bigint
  from pg_stat_lock
