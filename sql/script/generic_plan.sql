-- The plan for any values of the parameters, which are not known here, in the rest of the transaction: behind a pooler,
-- nothing of it is left. Databases based on PostgreSQL 11 do not have the setting. The search path is that of the role: all
-- names are qualified.
select pg_catalog.set_config(name, 'force_generic_plan', true) from pg_catalog.pg_settings
 where name operator(pg_catalog.=) 'plan_cache_mode'
