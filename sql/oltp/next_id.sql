-- The client chose the ids of the load: the sequence continues after them.
select setval(pg_get_serial_sequence('{table}', 'id'), {size})
