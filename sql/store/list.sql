-- Reads no records. `order` is a validated column of `runs`; `tags` is one condition of list_tag.sql for each tag.
select id, started_at, workload, title, label, status, valid, flavor, server_version, server, client_host,
       riops_version, sessions, rate_per_s, update_percent, distribution, stages, seconds, stage, batch, method,
       rows_per_s, transactions_per_s, statements_per_s, service_p50_us, service_p99_us, response_p50_us,
       response_p99_us, p99_us, errors, retries, record_error
  from runs
 where (cast($1 as text) is null or workload = cast($1 as text) or title = cast($1 as text))
   and (cast($2 as text) is null or label = cast($2 as text))
   and (cast($3 as {time}) is null or started_at >= cast($3 as {time}))
   and (cast($4 as {time}) is null or started_at < cast($4 as {time}))
   and (cast($5 as {boolean}) is null or valid = cast($5 as {boolean}))
   and (cast($8 as text) is null or id = cast($8 as text))
{tags} order by {order}
 limit cast($6 as bigint) offset cast($7 as bigint)
