select id, workload from runs where id = $1
