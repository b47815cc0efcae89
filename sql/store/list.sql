-- The newest runs. Of several stages, the one with most rows per second is listed, as in the other columns;
-- a statement that ran once has no latency.
with newest as (
  select * from run order by started_at desc, id desc limit ?1
), listed as (
  select newest.*,
         (select stage.value
            from json_each(case when json_valid(record) then record else '{}' end, '$.stages') as stage
           where json_type(stage.value, '$.statement') is null
           order by json_extract(stage.value, '$.throughput.rows_per_s') desc, stage.key desc
           limit 1) as stage
    from newest
)
select id, started_at, workload, label, target, status, valid, sessions,
       rows_per_s, transactions_per_s, p99_us,
       json_extract(stage, '$.service_us.p99'), json_extract(stage, '$.response_us.p99')
  from listed
 order by started_at desc, id desc
