-- PostgreSQL 12 and later. With an index scan CLUSTER writes while it reads; with a sort it reads the whole
-- table first.
select phase, case phase when 'writing new heap' then heap_tuples_written else heap_tuples_scanned end, {rows}
  from pg_stat_progress_cluster where pid = {process}
