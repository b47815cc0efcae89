update riops_store.fleet_agent set state = 'settled', points = coalesce($3, points)
 where fleet = $1 and token = $2 and state = 'running' returning number
