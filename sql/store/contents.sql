-- Version and tables of a SQLite file, and how many of the columns of a store its table of runs has in any version.
select (select user_version from pragma_user_version),
       (select count(*) from sqlite_master where name not like 'sqlite_%'),
       (select count(distinct name) from (select name from pragma_table_info('run')
                                           union all select name from pragma_table_info('runs')) as columns
         where name in ('started_at', 'workload', 'valid', 'label'))
