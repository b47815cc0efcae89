update riops_store.fleet_agent set state = 'failed', error = $3 where fleet = $1 and token = $2 returning number
