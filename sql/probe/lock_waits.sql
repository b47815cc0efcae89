-- Sessions of this run that wait for a lock.
select count(*) from pg_stat_activity
 where wait_event_type = 'Lock' and application_name = current_setting('application_name')
