select extract(epoch from clock_timestamp())
