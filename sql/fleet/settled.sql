update riops_store.fleet_agent set state = 'settled' where fleet = $1 and token = $2 and state = 'running' returning number
