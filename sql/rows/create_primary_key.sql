alter table riops.{table} add constraint {table}_pkey primary key (mykey)
