-- CLUSTER: reads the table by the index, or sorts it, and writes it anew in that order.
cluster verbose settings_loop using by_name;
