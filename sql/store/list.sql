-- Reads no records. `order` is a validated column of `runs`; `conditions` is list_tag.sql for each tag.
-- device_mb_s is the highest rate of the device in a statement that ran once and took at least 1 s; if all were
-- shorter, the rate of the longest one. In a shorter one, delayed writes of the previous stage would count as its own.
select {columns}
  from (select runs.*,
               (select stages.device_read_mb_s + stages.device_write_mb_s
                  from stages
                 where stages.run_id = runs.id and stages.kind = 'statement'
                   and stages.device_read_mb_s is not null
                 order by stages.seconds < 1,
                          case when stages.seconds < 1 then stages.seconds
                               else stages.device_read_mb_s + stages.device_write_mb_s end desc
                 limit 1) as device_mb_s,
               (select {json_object}(key, value) from tags where tags.run_id = runs.id) as tags
          from runs) as runs
 where (cast($1 as text) is null or workload = cast($1 as text) or title = cast($1 as text))
   and (cast($2 as text) is null or label = cast($2 as text))
   and (cast($3 as {time}) is null or started_at >= cast($3 as {time}))
   and (cast($4 as {time}) is null or started_at < cast($4 as {time}))
   and (cast($5 as {boolean}) is null or valid = cast($5 as {boolean})
        or workload = 'imported' and cast($9 as {boolean}) <> {false})
   and (cast($8 as text) is null or id = cast($8 as text))
{conditions} order by {order}
 limit cast($6 as bigint) offset cast($7 as bigint)
