-- SELECT_u1, SELECT_c1: one name in many, whose rows lie all over the table.
select max(sourceline) from settings_loop where name = 'shared_buffers';
