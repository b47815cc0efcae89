-- SELECT_u1, SELECT_c1: one of many names, whose rows are scattered over the whole table.
explain (analyze, buffers)
select max(sourceline) from settings_loop where name = 'shared_buffers';
