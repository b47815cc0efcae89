delete from riops_store.fleet
 where id = $1 and not exists (select from riops_store.fleet_agent where fleet = $1)
