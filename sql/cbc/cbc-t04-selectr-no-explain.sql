-- Not part of the benchmark: cbc-t04-selectr.sql without EXPLAIN, as the sessions of riops repeat it.
select max(sourceline) from settings_loop
 where seq < :scale * 6250
 limit :scale * 125;
