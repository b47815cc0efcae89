-- The key, the column that updates change, and one that only makes rows larger. The filler is
-- stored plain, since blanks would otherwise be compressed away.
create table riops.{table} (
  mykey bigint not null,
  scratch bigint not null,
  filler char({filler}) not null
);
alter table riops.{table} alter column filler set storage plain
