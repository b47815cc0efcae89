-- The number is arbitrary: every riops takes the same lock before it changes the schema.
select pg_advisory_xact_lock(7403318842071902311)
