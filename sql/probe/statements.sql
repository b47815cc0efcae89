-- Counters of pg_stat_statements for the statements of this database: a JSON object for each. Its columns depend on the version
-- of the extension. The texts, which are in a file, are left out. `{schema}` is the schema of the extension.
select to_jsonb(s) - 'query'
  from {schema}.pg_stat_statements(false) as s
 where dbid = (select oid from pg_database where datname = current_database())
   and (select count(*) from {schema}.pg_stat_statements(false)
         where dbid = (select oid from pg_database where datname = current_database())) <= {most}
