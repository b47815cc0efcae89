alter table {table} add constraint {name}_pkey primary key (id)
