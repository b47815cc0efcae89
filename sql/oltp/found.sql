-- The sysbench tables in a schema, with the properties that a run depends on.
select c.relname,
       exists (select from pg_constraint k where k.conrelid = c.oid and k.contype = 'p'
                and pg_get_constraintdef(k.oid) like 'PRIMARY KEY (id%)'),
       exists (select from pg_index i join pg_class x on x.oid = i.indexrelid
                where i.indrelid = c.oid and x.relname = replace(c.relname, 'sbtest', 'k_')),
       exists (select from pg_attrdef d join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
                where d.adrelid = c.oid and a.attname = 'id'),
       (select count(*) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0
           and a.attname in ('id', 'k', 'c', 'pad') and not a.attisdropped),
       coalesce(obj_description(c.oid, 'pg_class'), ''),
       -- On YugabyteDB, whose definitions of indexes name the order of each column.
       exists (select from pg_constraint k where k.conrelid = c.oid and k.contype = 'p'
                and pg_get_indexdef(k.conindid) like '%(id ASC)%')
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname = '{schema}' and c.relname ~ '^sbtest[0-9]+$' and c.relkind in ('r', 'p', 'f')
