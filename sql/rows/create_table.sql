-- The key, the column that updates change, and a filler that only makes rows larger. The filler has
-- plain storage because its blanks would otherwise be compressed.
create table riops.{table} (
  mykey bigint not null,
  scratch bigint not null,
  filler char({filler}) not null
);
alter table riops.{table} alter column filler set storage plain
