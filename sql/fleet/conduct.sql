-- Ends with the session, however the process ended.
select pg_try_advisory_lock(hashtextextended('riops fleet ' || $1::text, 0))
