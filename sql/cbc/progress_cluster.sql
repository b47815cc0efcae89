-- From PostgreSQL 12 on. An index scan writes as it reads; a sort reads all first.
select phase, case phase when 'writing new heap' then heap_tuples_written else heap_tuples_scanned end, {rows}
  from pg_stat_progress_cluster where pid = {process}
