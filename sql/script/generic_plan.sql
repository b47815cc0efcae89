-- The plan for any values of the parameters, which are not known here. Databases based on PostgreSQL 11 do not have the
-- setting.
select set_config(name, 'force_generic_plan', false) from pg_settings where name = 'plan_cache_mode'
