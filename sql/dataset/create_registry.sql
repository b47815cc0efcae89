-- The registry of datasets and of the runs that changed them.
create table riops.dataset (
  workload text primary key,
  id text not null,
  state text not null check (state in ('loading', 'complete')),
  parameters text not null,
  baseline text,
  fresh text,
  riops_version text not null,
  started_at timestamptz not null default now(),
  completed_at timestamptz
);
-- A run without an end time did not report its changes: riops or the server was killed.
create table riops.run (
  id text primary key,
  dataset text not null,
  started_at timestamptz not null default now(),
  ended_at timestamptz,
  rows_changed bigint,
  rows_unknown bigint,
  effects text,
  changes text
);
comment on table riops.run is 'riops registry 1';
-- Last: a registry without this comment is incomplete.
comment on table riops.dataset is 'riops registry 1';
