-- PostgreSQL 16 and earlier.
select checkpoints_timed, checkpoints_req, buffers_checkpoint from pg_stat_bgwriter
