-- SLOB's layout: with a fill factor of 10 % a second row would leave too little free space in the block.
-- Updates stay in the block, which has space for some more versions of its row.
create table riops.{table} (
  mykey bigint not null,
  scratch bigint not null,
  filler char({filler}) not null
) with (fillfactor = 10);
alter table riops.{table} alter column filler set storage plain
