-- The ids of the load came from the client: the sequence goes on behind them.
select setval(pg_get_serial_sequence('{table}', 'id'), {size})
