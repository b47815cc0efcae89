-- Whether the role may read files on the server.
select coalesce((select rolsuper from pg_roles where rolname = current_user), false)
       or coalesce((select pg_has_role(current_user, oid, 'usage') from pg_roles
                     where rolname = 'pg_read_server_files'), false)
