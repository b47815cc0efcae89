-- From PostgreSQL 17 on.
select num_timed, num_requested, buffers_written from pg_stat_checkpointer
