-- One row for each stage, with its run. A run without a decoded record has no stages.
create view stage_results as
select runs.id as run_id, runs.started_at as run_started_at, runs.workload, runs.title, runs.label, runs.status,
       runs.valid, runs.server, runs.server_version, runs.client_host, runs.rate_per_s, runs.distribution,
       stages.position as stage, stages.name as stage_name, stages.kind, stages.seconds, stages.sessions,
       stages.batch, stages.update_percent, stages.method, stages.transactions, stages.rows, stages.statements,
       stages.transactions_per_s, stages.rows_per_s, stages.statements_per_s,
       stages.service_mean_us, stages.service_p50_us, stages.service_p95_us, stages.service_p99_us,
       stages.service_max_us, stages.response_p50_us, stages.response_p95_us, stages.response_p99_us,
       stages.response_max_us, stages.errors, stages.retries, stages.buffers_share, stages.page_cache_share,
       stages.device_share, stages.client_limited
  from runs
  join stages on stages.run_id = runs.id;

-- The access paths that were not as expected, or that could not be checked.
create view changed_access_paths as
select runs.id as run_id, runs.started_at as run_started_at, runs.label, runs.server_version, accesses.stage,
       accesses.statement, accesses.moment, accesses.expected, accesses.found, accesses.sessions, accesses.error
  from runs
  join accesses on accesses.run_id = runs.id
 where not accesses.as_expected;

-- The checks of the data that failed.
create view failed_checks as
select runs.id as run_id, runs.started_at as run_started_at, runs.label, checks.name, checks.expected,
       checks.found, checks.unresolved
  from runs
  join checks on checks.run_id = runs.id
 where not checks.passed;

-- The errors of each run by SQLSTATE, over all its stages.
create view run_errors as
select runs.id as run_id, runs.started_at as run_started_at, runs.label, errors.sqlstate,
       sum(errors.count) as errors, sum(errors.retried) as retried, sum(errors.attempts_s) as attempts_s,
       min(errors.sample) as sample
  from runs
  join errors on errors.run_id = runs.id
 group by runs.id, runs.started_at, runs.label, errors.sqlstate;
