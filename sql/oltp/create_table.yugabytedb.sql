-- The key is part of the table there, and cannot follow.
create table {table} (
  id {id} not null,
  k integer not null default 0,
  c char(120) not null default '',
  pad char(60) not null default ''{key}
){split}{cache}
