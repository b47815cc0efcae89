-- All rows; those of the load, unless they were deleted; the sum of k; rows whose texts have another
-- length than sysbench gives them: their last character stands before one blank of padding. (With
-- length(), which counts characters one by one, the whole takes three times as long.)
select count(*), count(*) filter (where id between 1 and {size}), coalesce(sum(k), 0),
       count(*) filter (where get_byte(bpcharsend(c::char(120)), 118) = 32
                           or get_byte(bpcharsend(c::char(120)), 119) <> 32
                           or get_byte(bpcharsend(pad::char(60)), 58) = 32
                           or get_byte(bpcharsend(pad::char(60)), 59) <> 32)
  from {table}
