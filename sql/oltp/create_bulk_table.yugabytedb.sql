-- The table of sysbench's bulk_insert.
create table {table} (
  id integer not null,
  k integer not null default 0,
  primary key (id hash)
)
