-- One row for each parameter of the statement that is checked. The role determines the search path, so all names are
-- qualified.
select pg_catalog.format_type(t.type, null)
  from pg_catalog.pg_prepared_statements s,
       pg_catalog.unnest(s.parameter_types::pg_catalog.oid[]) with ordinality t(type, number)
 where s.name operator(pg_catalog.=) 'riops_check'
 order by t.number
