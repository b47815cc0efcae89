-- CREATE_INDEX: reads the whole table and sorts the names.
create index by_name on settings_loop (name);
