-- SELECT_u2, SELECT_c2: the query of t03, whose rows are now adjacent.
explain (analyze, buffers)
select max(sourceline) from settings_loop where name = 'shared_buffers';
