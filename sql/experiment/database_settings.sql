-- The settings that ALTER DATABASE … SET and ALTER ROLE … IN DATABASE … SET gave to the sessions of this role in this
-- database.
select distinct split_part(setting, '=', 1)
  from pg_db_role_setting, unnest(setconfig) as setting
 where setdatabase = (select oid from pg_database where datname = current_database())
   and setrole in (0, (select oid from pg_roles where rolname = current_user))
 order by 1
