-- SELECT_r: no index has seq, so that the whole table is read. The limit is for the one row of max().
select max(sourceline) from settings_loop
 where seq < (:scale * 6250)::integer
 limit (:scale * 125)::integer;
