-- SELECT_u2, SELECT_c2: the same as t03, whose rows lie side by side now.
select max(sourceline) from settings_loop where name = 'shared_buffers';
