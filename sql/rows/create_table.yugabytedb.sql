-- Without a key of its own a table is spread by the hash of a hidden row id, so that its rows lie
-- scattered over all tablets. With a range key (`key`) the table is its own index.
create table riops.{table} (
  mykey bigint not null,
  scratch bigint not null,
  filler char({filler}) not null{key}
){split}
