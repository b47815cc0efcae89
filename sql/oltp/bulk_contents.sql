-- All rows; none is loaded; the sum of k; rows whose k is not their id.
select count(*), 0, coalesce(sum(k), 0), count(*) filter (where k <> id) from {table}
