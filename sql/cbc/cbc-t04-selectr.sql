-- SELECT_r: seq is not indexed, so the whole table is read. The limit applies to the single row of max().
explain (analyze, buffers)
select max(sourceline) from settings_loop
 where seq < :scale * 6250
 limit :scale * 125;
