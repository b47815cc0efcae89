-- The number of these tables, by their qualified names, that have this comment.
select count(*)
  from json_array_elements_text($1::json) as names(name)
  join pg_namespace n on n.nspname = (parse_ident(name))[1]::name
  join pg_class c on c.relnamespace = n.oid and c.relname = (parse_ident(name))[2]::name
 where c.relkind in ('r', 'p') and obj_description(c.oid, 'pg_class') = $2
