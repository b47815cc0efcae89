-- Complete Block Check for psql: psql -d cbc -v scale=20 -ef cbc-psql.sql > cbc.log 2>&1
-- Creates the table settings_loop (scale: nominal size in GB, decimals allowed) and drops an existing one, so
-- use a dedicated database. Generated from cbc-t00…t06 by the tests of riops: edit those files instead.
\if :{?scale}
\else
\set scale 20
\endif
drop table if exists settings_loop;
select name, current_setting(name) from pg_settings where name in ('autovacuum', 'shared_buffers') order by name;
select pg_stat_reset();
select exists (select from pg_extension where extname = 'pg_stat_statements') as has_statements \gset
\if :has_statements
select pg_stat_statements_reset();
\endif
\timing on

\echo CREATE_TABLE
create table settings_loop as
select loop.seq, settings.*
  from generate_series(0, :scale * 12500) as loop(seq)
  left join pg_settings as settings on true;

\echo VACUUM
vacuum (freeze, analyze, verbose) settings_loop;

\echo CREATE_INDEX
create index by_name on settings_loop (name);

\echo SELECT_u1
explain (analyze, buffers)
select max(sourceline) from settings_loop where name = 'shared_buffers';

\echo SELECT_c1
explain (analyze, buffers)
select max(sourceline) from settings_loop where name = 'shared_buffers';

\echo SELECT_r
explain (analyze, buffers)
select max(sourceline) from settings_loop
 where seq < :scale * 6250
 limit :scale * 125;

\echo CLUSTER
cluster verbose settings_loop using by_name;

\echo SELECT_u2
explain (analyze, buffers)
select max(sourceline) from settings_loop where name = 'shared_buffers';

\echo SELECT_c2
explain (analyze, buffers)
select max(sourceline) from settings_loop where name = 'shared_buffers';

\timing off
\x on
select pg_relation_size('settings_loop') as "Size-Table";
select pg_relation_size('by_name') as "Size-Index";
