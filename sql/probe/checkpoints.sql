-- PostgreSQL 17 and later.
select num_timed, num_requested, buffers_written from pg_stat_checkpointer
