insert into runs (id, started_at, workload, title, status, valid, server, sessions, stages)
values ('-', '2000-01-01T00:00:00Z', '-', '-', '-', {false}, '-', 0, 0)
