create table run (
  id text primary key,
  started_at text not null,
  workload text not null,
  label text,
  target text not null,
  status text not null,
  valid integer not null,
  sessions integer not null,
  rows_per_s real,
  transactions_per_s real,
  p99_us real,
  record text not null
) strict;
create index run_started_at on run (started_at desc);
