-- PostgreSQL 9.6 and later.
select phase, heap_blks_scanned, heap_blks_total from pg_stat_progress_vacuum where pid = {process}
