-- Bytes left behind by an earlier run, which the next run drops.
select coalesce((select pg_database_size(oid) from pg_database
                  where datname = 'riops_cbc' and has_database_privilege(oid, 'connect')), 0)
     + coalesce(pg_total_relation_size(to_regclass('riops.settings_loop')), 0)
