-- Requests generic plans in the rest of the transaction, because the values of the parameters are not known. Behind a pooler,
-- the setting does not outlive the transaction. Databases based on PostgreSQL 11 do not have the setting. The role determines
-- the search path, so all names are qualified.
select pg_catalog.set_config(name, 'force_generic_plan', true) from pg_catalog.pg_settings
 where name operator(pg_catalog.=) 'plan_cache_mode'
