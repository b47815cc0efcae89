-- What an agent needs to know of all: $2 is the stage, $3 the seconds after which an agent without a heartbeat is lost.
select count(*),
       count(*) filter (where stage >= $2::integer or state <> 'running'),
       -- Lost before its sessions were connected.
       count(*) filter (where stage < $2::integer and state = 'running'
                          and heartbeat_at < clock_timestamp() - make_interval(secs => $3::float8)),
       -- Lost before its changes were in the ledger, and after that.
       count(*) filter (where state = 'running' and heartbeat_at < clock_timestamp() - make_interval(secs => $3::float8)),
       count(*) filter (where state = 'settled' and heartbeat_at < clock_timestamp() - make_interval(secs => $3::float8)),
       count(*) filter (where state <> 'running'),
       count(*) filter (where state in ('done', 'failed')),
       min(stage) filter (where number = 0),
       (select 'agent ' || number || ' on ' || host || ': ' || error
          from riops_store.fleet_agent failed where failed.fleet = $1 and state = 'failed' order by number limit 1),
       (select 'agent ' || number || ' on ' || host
          from riops_store.fleet_agent lost
         where lost.fleet = $1 and state = 'running'
           and heartbeat_at < clock_timestamp() - make_interval(secs => $3::float8) order by number limit 1),
       (select start_s from riops_store.fleet_start start where start.fleet = $1 and start.stage = $2::integer),
       (select result from riops_store.fleet where id = $1),
       -- The state of agent 0, which conducts the end, if it lives.
       min(state) filter (where number = 0 and state <> 'failed'
                            and heartbeat_at >= clock_timestamp() - make_interval(secs => $3::float8)),
       (select refused from riops_store.fleet where id = $1)
  from riops_store.fleet_agent where fleet = $1
