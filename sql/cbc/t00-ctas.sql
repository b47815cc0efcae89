-- CREATE_TABLE: writes the table sequentially, and its WAL unless wal_level is minimal.
create table settings_loop as
select loop.seq, settings.*
  from generate_series(0, (:scale * 12500)::integer) as loop(seq)
  left join pg_settings as settings on true;
