-- Up to PostgreSQL 16.
select checkpoints_timed, checkpoints_req, buffers_checkpoint from pg_stat_bgwriter
