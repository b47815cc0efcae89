-- CLUSTER: reads the table through the index, or sorts it, and rewrites it in index order.
cluster verbose settings_loop using by_name;
