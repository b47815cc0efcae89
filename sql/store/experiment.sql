select id, name, kind, created_at, finished_at, definition, failures, environment, notes from experiments where id = $1
