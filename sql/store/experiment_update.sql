update experiments
   set finished_at = cast($2 as {time}), failures = $3, environment = cast($4 as text)
 where id = $1
returning id
