-- VACUUM: reads the whole table, and writes each block again that is not frozen yet.
vacuum (freeze, analyze, verbose) settings_loop;
