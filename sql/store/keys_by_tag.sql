select runs.id, runs.workload
  from tags
  join runs on runs.id = tags.run_id
 where tags.key = $1 and (cast($2 as text) is null or tags.value = cast($2 as text))
 order by runs.started_at, runs.id
