-- CREATE_TABLE: writes the table sequentially, and its WAL unless wal_level is minimal. Drops an existing table
-- first. With a decimal scale, the column seq is numeric, otherwise integer.
drop table if exists settings_loop;
create table settings_loop as
select loop.seq, settings.*
  from generate_series(0, :scale * 12500) as loop(seq)
  left join pg_settings as settings on true;
