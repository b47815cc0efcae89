-- The rows of ybio's table, each as a JSON object of texts: older versions have fewer columns. The times have no
-- time zone in the table; the session uses the server's time zone, as ybio did.
select (select json_object_agg(each.key, case
                 when each.key in ('start_time', 'end_time')
                   then to_char(each.value::timestamp::timestamptz at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')
                 when each.key in ('prepared', 'index_only') then left(each.value, 1)
                 else each.value end)
          from json_each_text(row_to_json(benchruns)) as each)::text
  from {schema}.benchruns
 order by job_id
