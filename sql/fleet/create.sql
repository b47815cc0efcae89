create table if not exists riops_store.fleet (
  id text primary key,
  name text not null,
  agents integer not null,
  version text not null,
  server text not null,
  plan text not null,
  is_interrupted boolean not null default false,
  -- The last agent that did not fit, and why.
  refused text,
  -- Absent while the fleet runs: 'stored', or the error.
  result text,
  -- The threshold that ended the run, and when.
  breached text,
  end_s double precision
);
create unique index if not exists fleet_running on riops_store.fleet (name) where result is null;
create table if not exists riops_store.fleet_agent (
  fleet text not null references riops_store.fleet (id) on delete cascade,
  number integer not null,
  token text not null,
  host text not null,
  -- Id of its run.
  run text,
  -- Number of the stage for which its sessions are connected, from 1.
  stage integer not null default 0,
  state text not null default 'running',
  heartbeat_at timestamptz not null default clock_timestamp(),
  error text,
  points text,
  record text,
  agent text,
  primary key (fleet, number)
);
-- A heartbeat reads one row, however many agents there are.
create unique index if not exists fleet_agent_token on riops_store.fleet_agent (token);
create table if not exists riops_store.fleet_start (
  fleet text not null references riops_store.fleet (id) on delete cascade,
  stage integer not null,
  start_s double precision not null,
  primary key (fleet, stage)
)
