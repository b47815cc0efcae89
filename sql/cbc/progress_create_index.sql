-- PostgreSQL 12 and later. The table scan counts blocks, the later phases count rows.
select phase, case when tuples_total > 0 then tuples_done else blocks_done end,
       case when tuples_total > 0 then tuples_total else blocks_total end
  from pg_stat_progress_create_index where pid = {process}
