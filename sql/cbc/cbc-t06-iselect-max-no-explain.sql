-- Not part of the benchmark: cbc-t06-iselect-max.sql without EXPLAIN, as the sessions of riops repeat it.
select max(sourceline) from settings_loop where name = 'shared_buffers';
