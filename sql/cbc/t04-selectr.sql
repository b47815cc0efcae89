-- SELECT_r: seq is not indexed, so the whole table is read. The limit applies to the single row of max().
select max(sourceline) from settings_loop
 where seq < (:scale * 6250)::integer
 limit (:scale * 125)::integer;
