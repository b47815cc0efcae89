create table disk_limit (
  host text not null,
  device text not null,
  measured_at text not null,
  figures text not null,
  primary key (host, device)
) strict;
