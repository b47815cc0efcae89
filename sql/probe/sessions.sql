-- The run's own sessions by wait event, including idle sessions, and other backends that do work. `{own}` is the condition for
-- the own sessions, `{place}` a text that distinguishes them further.
select {own},
       case when {own} then {place}
            when a.backend_type = 'autovacuum worker' then 'autovacuum'
            when a.backend_type = 'walsender' and a.query like 'START_REPLICATION%'
            then 'replication to ' || coalesce(nullif(a.application_name, ''), 'a standby')
            else coalesce(nullif(a.application_name, ''), a.backend_type) end,
       case when a.state like 'idle in transaction%' then 'idle in transaction'
            when a.state like 'idle%' then 'idle'
            else coalesce(a.wait_event_type || ':' || a.wait_event, 'CPU') end,
       count(*)
  from pg_stat_get_activity(null) as a
 where a.pid <> pg_backend_pid() and a.application_name <> 'riops probe'
   -- The server's own processes serve all sessions.
   and a.backend_type not in ('archiver', 'autovacuum launcher', 'background writer', 'checkpointer', 'io worker',
                              'logical replication launcher', 'logger', 'slotsync worker', 'startup', 'walreceiver',
                              'walsummarizer', 'walwriter')
   and case when {own} then a.state is not null
            -- A session that sleeps, or waits for its client or for a lock, takes nothing from others.
            else (a.state = 'active' or a.backend_type not in ('client backend', 'parallel worker'))
                 and coalesce(a.wait_event_type, '') not in ('Activity', 'Client', 'Extension', 'Lock', 'Timeout') end
 group by 1, 2, 3
