-- Where new tables are stored, the maximum size of the WAL, and the size of the tables that will be replaced.
-- The data directory is visible only with the privilege to read all settings.
select coalesce(nullif(pg_tablespace_location(tablespace.oid), ''),
                (select setting from pg_settings where name = 'data_directory')),
       pg_size_bytes(current_setting('max_wal_size')),
       (select coalesce(sum(pg_total_relation_size(relation.oid)), 0)
          from pg_class relation
         where relation.relkind = 'r' and obj_description(relation.oid, 'pg_class') = '{mark}')
  from pg_tablespace tablespace
 where spcname = coalesce(nullif(current_setting('default_tablespace'), ''),
                          (select spcname
                             from pg_tablespace join pg_database on dattablespace = pg_tablespace.oid
                            where datname = current_database()))
