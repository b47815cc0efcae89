create table device_limit (
  identity text not null primary key,
  host text not null,
  device text not null,
  measured_at text not null,
  figures text not null
) strict;
