-- The texts of these statements.
select distinct on (queryid) queryid::text, query
  from {schema}.pg_stat_statements
 where queryid::text = any('{{ids}}'::text[])
   and dbid = (select oid from pg_database where datname = current_database())
