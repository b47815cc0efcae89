select run_id, position, name, kind, started_at, seconds, sessions, batch, update_batch, method, transactions, rows,
       statements, transactions_per_s, rows_per_s, statements_per_s, service_mean_us, service_p50_us,
       service_p95_us, service_p99_us, service_max_us, response_mean_us, response_p50_us, response_p95_us,
       response_p99_us, response_max_us, errors, retries, update_percent, buffers_share, page_cache_share,
       device_share, case kind when 'statement' then device_read_mb_s + device_write_mb_s end as device_mb_s,
       client_limited
  from stages
 where run_id in ({ids})
 order by run_id, position
