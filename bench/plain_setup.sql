-- The peer of setup in sql/ybio.sql: the index exists before the load, and lpad repeats the md5 of the filler.
create or replace procedure plain_setup(tab_rows bigint, batches bigint, filler int) language plpgsql as $$
begin
  drop table if exists plain0001;
  execute format('create table plain0001 (mykey bigint, scratch bigint, filler char(%s))', filler);
  create index on plain0001 (mykey);
  commit;
  for batch in 1..batches loop
    insert into plain0001
    select key, (random() * tab_rows)::bigint as shuffled, lpad('', filler, md5(random()::text))
      from generate_series(batch, tab_rows, batches) as key
     order by shuffled;
    commit;
  end loop;
end $$;
