-- Hash sharding spreads a load over all tablets.
create table riops.{table} (id int, f1 text, f2 text, f3 text, f4 text, primary key (id hash))
  split into {tablets} tablets
