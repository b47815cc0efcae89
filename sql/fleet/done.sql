update riops_store.fleet_agent set state = 'done', record = $3, agent = $4, points = coalesce($5, points)
 where fleet = $1 and token = $2 returning number
