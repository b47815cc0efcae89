-- The tables of the store. The record's JSON is the truth; the other tables are derived from it.
create table runs (
  id text primary key,
  started_at text not null,
  workload text not null,
  title text not null,
  label text,
  status text not null,
  failure text,
  valid integer not null,
  reasons text,
  warnings text,
  riops_version text,
  client_host text,
  flavor text,
  server_version text,
  server text not null,
  address text,
  database_name text,
  sessions integer not null,
  workers integer,
  protocol text,
  schedule text,
  rate_per_s real,
  update_percent real,
  distribution text,
  stages integer not null,
  seconds real,
  stage text,
  batch integer,
  method text,
  rows_per_s real,
  transactions_per_s real,
  statements_per_s real,
  service_p50_us real,
  service_p99_us real,
  response_p50_us real,
  response_p99_us real,
  p99_us real,
  errors integer,
  retries integer,
  record_error text
) strict;
create table records (
  run_id text primary key references runs (id) on delete cascade,
  record text not null
) strict;
create table stages (
  run_id text not null references runs (id) on delete cascade,
  position integer not null,
  name text not null,
  kind text not null,
  started_at text,
  seconds real not null,
  sessions integer not null,
  batch integer,
  update_batch integer,
  method text,
  transactions integer not null,
  rows integer not null,
  statements integer not null,
  transactions_per_s real not null,
  rows_per_s real not null,
  statements_per_s real not null,
  service_mean_us real,
  service_p50_us real,
  service_p90_us real,
  service_p95_us real,
  service_p99_us real,
  service_p999_us real,
  service_max_us real,
  response_mean_us real,
  response_p50_us real,
  response_p90_us real,
  response_p95_us real,
  response_p99_us real,
  response_p999_us real,
  response_max_us real,
  failed integer,
  unknown integer,
  errors integer not null,
  retries integer not null,
  reconnects integer not null,
  late integer,
  skipped integer,
  update_percent real,
  buffers_share real,
  page_cache_share real,
  device_share real,
  liops real,
  piops real,
  hit_ratio real,
  blocks_per_row real,
  wal_mb_s real,
  device text,
  device_reads_per_s real,
  device_writes_per_s real,
  device_read_mb_s real,
  device_write_mb_s real,
  device_busy_share real,
  client_cpu_s real,
  client_share real,
  client_limited integer,
  server_cpu_s real,
  primary key (run_id, position)
) strict, without rowid;
create table operations (
  run_id text not null references runs (id) on delete cascade,
  stage integer not null,
  name text not null,
  transactions integer not null,
  rows integer not null,
  failed integer not null,
  unknown integer not null,
  blocks_per_transaction real,
  service_mean_us real,
  service_p50_us real,
  service_p90_us real,
  service_p95_us real,
  service_p99_us real,
  service_p999_us real,
  service_max_us real,
  response_mean_us real,
  response_p50_us real,
  response_p90_us real,
  response_p95_us real,
  response_p99_us real,
  response_p999_us real,
  response_max_us real,
  primary key (run_id, stage, name)
) strict, without rowid;
create table series (
  run_id text not null references runs (id) on delete cascade,
  stage integer not null,
  position integer not null,
  t_s real not null,
  seconds real not null,
  transactions integer not null,
  rows integer not null,
  errors integer not null,
  failed integer not null,
  late integer not null,
  skipped integer not null,
  retries integer not null,
  reconnects integer not null,
  backlog integer,
  p50_us real,
  p99_us real,
  max_us real,
  percentile_us real,
  response_p50_us real,
  response_p99_us real,
  response_max_us real,
  primary key (run_id, stage, position)
) strict, without rowid;
create table errors (
  run_id text not null references runs (id) on delete cascade,
  stage integer not null,
  sqlstate text not null,
  count integer not null,
  retried integer not null,
  attempts_s real not null,
  without_success_s real,
  sample text not null,
  primary key (run_id, stage, sqlstate)
) strict, without rowid;
create table accesses (
  run_id text not null references runs (id) on delete cascade,
  position integer not null,
  stage text,
  statement text not null,
  moment text not null,
  expected text not null,
  found text not null,
  as_expected integer not null,
  sessions integer not null,
  error text,
  primary key (run_id, position)
) strict, without rowid;
create table checks (
  run_id text not null references runs (id) on delete cascade,
  position integer not null,
  name text not null,
  expected text not null,
  found text not null,
  passed integer not null,
  unresolved integer not null,
  unknown integer not null,
  primary key (run_id, position)
) strict, without rowid;
create table tags (
  run_id text not null references runs (id) on delete cascade,
  key text not null,
  value text not null,
  primary key (run_id, key)
) strict, without rowid;
create table device_limits (
  host text not null,
  device text not null,
  identity text,
  measured_at text not null,
  tool text,
  sequential_read_mb_s real,
  sequential_write_mb_s real,
  random_reads_per_s real,
  random_writes_per_s real,
  figures text not null
) strict;
create index runs_started_at on runs (started_at desc, id desc);
create index runs_label on runs (label);
create index tags_key_value on tags (key, value);
create unique index device_limits_identity on device_limits (identity) where identity is not null;
create unique index device_limits_name on device_limits (host, device) where identity is null;

-- The runs and limits of earlier versions, with the columns that those versions stored. riops derives all others
-- from the records in the same transaction.
insert into runs (id, started_at, workload, title, label, status, valid, server, sessions, stages, rows_per_s,
                  transactions_per_s, p99_us)
select id, started_at,
       case instr(workload, ',') + instr(workload, ' ') when 0 then workload
            else substr(workload, 1, max(1, instr(replace(workload, ',', ' '), ' ') - 1)) end,
       workload, label, status, valid, target, sessions, 0, rows_per_s, transactions_per_s, p99_us
  from run;
insert into records (run_id, record) select id, record from run;
insert into device_limits (host, device, identity, measured_at, figures)
select host, device, null, measured_at, figures from disk_limit
 union all
select host, device, identity, measured_at, figures from device_limit;
drop table run;
drop table disk_limit;
drop table device_limit;

-- The tags of each run as a JSON object.
create view run_tags as
select run_id, json_group_object(key, value) as tags
  from (select run_id, key, value from tags order by run_id, key)
 group by run_id;
