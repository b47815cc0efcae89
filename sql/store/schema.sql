-- The tables of a store. The JSON of a record is the truth; the other tables are derived from it.
create table runs (
  id text primary key,
  started_at {time} not null,
  workload text not null,
  title text not null,
  label text,
  status text not null,
  failure text,
  valid {boolean} not null,
  marks text,
  note text,
  reasons text,
  warnings text,
  riops_version text,
  client_host text,
  flavor text,
  server_version text,
  server text not null,
  address text,
  database_name text,
  sessions {integer},
  workers {integer},
  protocol text,
  schedule text,
  rate_per_s {real},
  update_percent {real},
  distribution text,
  stages {integer} not null,
  seconds {real},
  stage text,
  batch {integer},
  method text,
  rows_per_s {real},
  transactions_per_s {real},
  statements_per_s {real},
  service_p50_us {real},
  service_p99_us {real},
  response_p50_us {real},
  response_p99_us {real},
  service_lower_bound_from {real},
  response_lower_bound_from {real},
  p99_us {real},
  errors {integer},
  retries {integer}
){strict};
create table records (
  run_id text primary key references runs (id) on delete cascade,
  record text not null
){strict};
create table stages (
  run_id text not null references runs (id) on delete cascade,
{stage_columns}  primary key (run_id, position)
){keyed};
create table operations (
  run_id text not null references runs (id) on delete cascade,
  stage {integer} not null,
  name text not null,
  transactions {integer} not null,
  rows {integer} not null,
  failed {integer} not null,
  unknown {integer} not null,
  blocks_per_transaction {real},
  service_mean_us {real},
  service_p50_us {real},
  service_p90_us {real},
  service_p95_us {real},
  service_p99_us {real},
  service_p999_us {real},
  service_p9999_us {real},
  service_max_us {real},
  service_lower_bound_from {real},
  response_mean_us {real},
  response_p50_us {real},
  response_p90_us {real},
  response_p95_us {real},
  response_p99_us {real},
  response_p999_us {real},
  response_p9999_us {real},
  response_max_us {real},
  response_lower_bound_from {real},
  primary key (run_id, stage, name)
){keyed};
create table series (
  run_id text not null references runs (id) on delete cascade,
  stage {integer} not null,
  position {integer} not null,
  t_s {real} not null,
  seconds {real} not null,
  transactions {integer} not null,
  rows {integer} not null,
  errors {integer} not null,
  failed {integer} not null,
  late {integer},
  skipped {integer} not null,
  retries {integer} not null,
  reconnects {integer} not null,
  backlog {integer},
  p50_us {real},
  p99_us {real},
  p9999_us {real},
  max_us {real},
  percentile_us {real},
  response_p50_us {real},
  response_p99_us {real},
  response_p9999_us {real},
  response_max_us {real},
  primary key (run_id, stage, position)
){keyed};
create table errors (
  run_id text not null references runs (id) on delete cascade,
  stage {integer} not null,
  sqlstate text not null,
  count {integer} not null,
  retried {integer} not null,
  attempts_s {real} not null,
  without_success_s {real},
  sample text not null,
  primary key (run_id, stage, sqlstate)
){keyed};
create table accesses (
  run_id text not null references runs (id) on delete cascade,
  position {integer} not null,
  stage text,
  statement text not null,
  moment text not null,
  expected text not null,
  found text not null,
  as_expected {boolean} not null,
  sessions {integer} not null,
  error text,
  primary key (run_id, position)
){keyed};
create table checks (
  run_id text not null references runs (id) on delete cascade,
  position {integer} not null,
  name text not null,
  expected text not null,
  found text not null,
  passed {boolean} not null,
  unresolved {integer} not null,
  unknown {boolean} not null,
  primary key (run_id, position)
){keyed};
create table tags (
  run_id text not null references runs (id) on delete cascade,
  key text not null,
  value text not null,
  primary key (run_id, key)
){keyed};
create table facts (
  run_id text not null references runs (id) on delete cascade,
  key text not null,
  value text not null,
  primary key (run_id, key)
){keyed};
create table device_limits (
  host text not null,
  device text not null,
  identity text,
  measured_at text not null,
  tool text,
  sequential_read_mb_s {real},
  sequential_write_mb_s {real},
  random_reads_per_s {real},
  random_writes_per_s {real},
  figures text not null
){strict};
create index runs_started_at on runs (started_at desc, id desc);
create index runs_label on runs (label);
create index tags_key_value on tags (key, value);
create index facts_key_value on facts (key, value);
create unique index device_limits_identity on device_limits (identity) where identity is not null;
create unique index device_limits_name on device_limits (host, device) where identity is null;

-- Experiments. Their runs are ordinary runs with the tag `experiment`.
create table experiments (
  id text primary key,
  name text not null,
  kind text not null,
  created_at {time} not null,
  finished_at {time},
  definition text not null,
  failures text not null,
  environment text,
  notes text not null default '[]'
){strict};
create index experiments_created_at on experiments (created_at desc);
create index experiments_name on experiments (name, created_at desc);

-- The tags of each run as a JSON object.
create view run_tags as
select run_id, {json_object}(key, value) as tags
  from (select run_id, key, value from tags order by run_id, key) as tags
 group by run_id;

-- One row for each stage, with its run. A run without a decoded record has no stages.
create view stage_results as
select runs.id as run_id, runs.started_at as run_started_at, runs.workload, runs.title, runs.label, runs.status,
       runs.valid, runs.server, runs.server_version, runs.client_host, runs.rate_per_s, runs.distribution,
       {joined_stage_columns}
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
