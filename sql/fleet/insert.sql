insert into riops_store.fleet (id, name, agents, version, server, plan) values ($1, $2, $3::integer, $4, $5, $6)
