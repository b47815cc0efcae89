update riops_store.fleet set refused = $2
 where name = $1 and result is null
   and not exists (select from riops_store.fleet_start start where start.fleet = fleet.id)
