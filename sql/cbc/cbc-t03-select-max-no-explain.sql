-- Not part of the benchmark: cbc-t03-select-max.sql without EXPLAIN, as the sessions of riops repeat it.
select max(sourceline) from settings_loop where name = 'shared_buffers';
