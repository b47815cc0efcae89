-- YugabyteDB stores a table by its primary key, which must exist before the load.
create table {table} (
  id {id} not null,
  k integer not null default 0,
  c char(120) not null default '',
  pad char(60) not null default ''{key}
){split}{options}
