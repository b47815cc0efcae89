-- For each range of ids: its number, rows, texts of a length that none should have, and a checksum
-- that changes with every text and with the row in which it stands.
select id / {part}, count(*),
       count(*) filter (where coalesce(length(f1), 0) not in ({lengths})
                           or coalesce(length(f2), 0) not in ({lengths})
                           or coalesce(length(f3), 0) not in ({lengths})
                           or coalesce(length(f4), 0) not in ({lengths})),
       coalesce(sum(hashtextextended(f1 || f2 || f3 || f4, id)), 0)
  from riops.{table} group by 1 order by 1
