-- The server releases the lock when the session ends, however the process ended.
select pg_try_advisory_lock(hashtextextended('riops experiment ' || $1::text, 0))
