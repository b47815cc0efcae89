create schema if not exists riops_store;
create table if not exists riops_store.store_version (version integer not null);
insert into riops_store.store_version select 0 where not exists (select 1 from riops_store.store_version)
