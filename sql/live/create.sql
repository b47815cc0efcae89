-- Unlogged: runs in progress do not survive a crash of the server, and cost no write-ahead log.
create unlogged table if not exists riops_store.live_runs (
  id text primary key,
  state text not null,
  state_number bigint not null,
  heartbeat_at timestamptz not null
);
create unlogged table if not exists riops_store.live_events (
  run_id text not null references riops_store.live_runs (id) on delete cascade,
  number bigint not null,
  event text not null,
  primary key (run_id, number)
)
