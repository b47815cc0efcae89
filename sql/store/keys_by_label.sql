select id, workload from runs where label = $1 order by started_at, id
