-- All rows; rows in the loaded id range; the sum of k; rows whose texts do not have the length that
-- sysbench gives them, with exactly one blank of padding at the end. (With length(), which counts
-- characters one by one, the query takes three times as long.)
select count(*), count(*) filter (where id between 1 and {size}), coalesce(sum(k), 0),
       count(*) filter (where get_byte(bpcharsend(c::char(120)), 118) = 32
                           or get_byte(bpcharsend(c::char(120)), 119) <> 32
                           or get_byte(bpcharsend(pad::char(60)), 58) = 32
                           or get_byte(bpcharsend(pad::char(60)), 59) <> 32)
  from {table}
