-- State of all agents for one of them, in stage $2. An agent is lost after $3 seconds without a heartbeat. An agent with a
-- heartbeat as far in the future is lost as well: the clock was set back, or the value changed.
with agent as (
  select number, host, stage, state, error, heartbeat_at not between clock_timestamp() - make_interval(secs => $3::float8)
                                 and clock_timestamp() + make_interval(secs => $3::float8) as is_silent
    from riops_store.fleet_agent where fleet = $1)
select count(*),
       count(*) filter (where stage >= $2::integer or state <> 'running'),
       -- Lost before its sessions were connected.
       count(*) filter (where stage < $2::integer and state = 'running' and is_silent),
       -- Lost before its changes were in the ledger, and after that.
       count(*) filter (where state = 'running' and is_silent),
       count(*) filter (where state = 'settled' and is_silent),
       count(*) filter (where state <> 'running'),
       count(*) filter (where state in ('done', 'failed')),
       min(stage) filter (where number = 0),
       (select 'agent ' || number || ' on ' || host || ': ' || error
          from agent where state = 'failed' order by number limit 1),
       (select 'agent ' || number || ' on ' || host
          from agent where state = 'running' and is_silent order by number limit 1),
       (select start_s from riops_store.fleet_start start where start.fleet = $1 and start.stage = $2::integer),
       (select result from riops_store.fleet where id = $1),
       -- The state of agent 0, which conducts the end, if it lives.
       min(state) filter (where number = 0 and state <> 'failed' and not is_silent),
       (select refused from riops_store.fleet where id = $1)
  from agent
