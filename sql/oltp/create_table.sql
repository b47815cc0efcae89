-- The table of sysbench. Its keys are created after the load, which is faster.
create table {table} (
  id {id} not null,
  k integer not null default 0,
  c char(120) not null default '',
  pad char(60) not null default ''
){options}
