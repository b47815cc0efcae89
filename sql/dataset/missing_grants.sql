-- The privileges that the role lacks for a dataset, as statements that grant them. Outside of the schema riops,
-- only the tables of sysbench matter.
select statement
  from (select 1 as position,
               format('grant create on database %I to %I', current_database(), current_user) as statement
         where {creates} and to_regnamespace('riops') is null
           and not has_database_privilege(current_database(), 'create')
        union all
        select 2, format('grant %s on schema %I to %I',
                         case when {creates} then 'usage, create' else 'usage' end, nspname, current_user)
          from pg_namespace
         where nspname in ({schemas})
           and (not has_schema_privilege(oid, 'usage') or {creates} and not has_schema_privilege(oid, 'create'))
        union all
        select 3, format('grant %s on %s to %I',
                         case when {writes} then 'select, insert, update, delete' else 'select' end,
                         string_agg(format('%I.%I', nspname, relname), ', ' order by nspname, relname),
                         current_user)
          from pg_class relation join pg_namespace on pg_namespace.oid = relnamespace
         where relkind = 'r' and nspname in ({schemas})
           and (nspname = 'riops' and (relname in ('dataset', 'run')
                                       or obj_description(relation.oid, 'pg_class') = 'riops dataset {dataset}')
                or nspname <> 'riops' and relname ~ '^sbtest[0-9]+$')
           and (not has_table_privilege(relation.oid, 'select')
                or {writes} and not (has_table_privilege(relation.oid, 'insert')
                                     and has_table_privilege(relation.oid, 'update')
                                     and has_table_privilege(relation.oid, 'delete')))
        having count(*) > 0
        union all
        select 4, format('grant usage on sequence %s to %I',
                         string_agg(format('%I.%I', nspname, relname), ', ' order by nspname, relname),
                         current_user)
          from pg_class sequence join pg_namespace on pg_namespace.oid = relnamespace
         where nspname in ({schemas}) and relname ~ '^sbtest[0-9]+_' and '{dataset}' = 'oltp' and {writes}
           -- The function fails for a relation that is not a sequence.
           and case when relkind = 'S' then not has_sequence_privilege(sequence.oid, 'usage') else false end
        having count(*) > 0) as missing
 order by position, statement
