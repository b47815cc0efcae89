-- pg_wait_sampling: number of samples so far of the sessions of this run by wait event, and of the checkpointer, which always
-- has an event: how often samples were taken. Version 1.1 has no samples of running processes. `{schema}` is the extension's schema.
with own as (
    select pid from pg_stat_get_activity(null)
     where application_name = current_setting('application_name') and pid <> pg_backend_pid()
       and backend_type = 'client backend'),
checkpointer as (
    select pid from pg_stat_get_activity(null) where backend_type = 'checkpointer')
select coalesce(p.event_type || ':' || p.event, 'CPU'), sum(p.count)
  from {schema}.pg_wait_sampling_profile as p
 where p.pid in (select pid from own)
 group by 1
 union all
select 'samples', sum(p.count)
  from {schema}.pg_wait_sampling_profile as p
 where p.pid in (select pid from checkpointer)
