select number, points from riops_store.fleet_agent where fleet = $1
