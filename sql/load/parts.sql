-- For each range of ids: its number, its rows, the rows with a text of unexpected length, and a checksum
-- that depends on every text and on the row that contains it.
select id / {part}, count(*),
       count(*) filter (where coalesce(length(f1), 0) not in ({lengths})
                           or coalesce(length(f2), 0) not in ({lengths})
                           or coalesce(length(f3), 0) not in ({lengths})
                           or coalesce(length(f4), 0) not in ({lengths})),
       coalesce(sum(hashtextextended(f1 || f2 || f3 || f4, id)), 0)
  from {source} group by 1 order by 1
