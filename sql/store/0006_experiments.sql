-- Experiments. Their runs are ordinary runs with the tag `experiment`.
create table experiments (
  id text primary key,
  name text not null,
  kind text not null,
  created_at text not null,
  finished_at text,
  definition text not null,
  failures text not null,
  environment text
) strict;
create index experiments_created_at on experiments (created_at desc);
create index experiments_name on experiments (name, created_at desc);
