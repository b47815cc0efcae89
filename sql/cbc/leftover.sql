-- Bytes left behind by an earlier run, which the next run drops. Other roles may own the schema and permit nothing in it.
select coalesce((select pg_database_size(oid) from pg_database
                  where datname = 'riops_cbc' and has_database_privilege(oid, 'connect')), 0)
     + coalesce((select pg_total_relation_size(class.oid) from pg_class as class
                   join pg_namespace as namespace on namespace.oid = class.relnamespace
                  where namespace.nspname = 'riops' and class.relname = 'settings_loop'), 0)
