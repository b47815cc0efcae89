select coalesce(shobj_description(oid, 'pg_database'), ''), pg_get_userbyid(datdba) = current_user
  from pg_database
 where datname = $1
