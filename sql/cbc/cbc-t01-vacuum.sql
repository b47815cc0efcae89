-- VACUUM: reads the whole table and rewrites each block that is not frozen yet.
vacuum (freeze, analyze, verbose) settings_loop;
