update riops_store.fleet_agent set stage = $3::integer, run = $4, points = null where fleet = $1 and token = $2 returning number
