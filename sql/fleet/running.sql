select id, agents, version, server, plan,
       exists (select from riops_store.fleet_start start where start.fleet = fleet.id)
  from riops_store.fleet
 where name = $1 and result is null
