-- Without a primary key a table is sharded by the hash of a hidden row id, so its rows are scattered over
-- all tablets. With a range-sharded primary key (`key`) the table is its own index.
create table riops.{table} (
  mykey bigint not null,
  scratch bigint not null,
  filler char({filler}) not null{key}
){split}
