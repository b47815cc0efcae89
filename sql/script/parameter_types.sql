-- One row for each parameter of the statement that is checked.
select format_type(t.type, null)
  from pg_prepared_statements s,
       unnest(s.parameter_types::oid[]) with ordinality t(type, number)
 where s.name = 'riops_check'
 order by t.number
