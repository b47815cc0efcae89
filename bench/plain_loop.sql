-- The peer of sql/ybio.sql: a straightforward loop on the same tables. Each batch is a range from a random key,
-- a formatted string to execute, a transaction and a notice. With prepared => true, the string executes a
-- prepared statement.
create or replace procedure plain_loop(
  tab_name text, tab_rows bigint, batch_size bigint, run_s float8, pct_update int, prepared boolean,
  inout rows_per_s float8
) language plpgsql as $$
declare
  started timestamptz := clock_timestamp();
  total bigint := 0;
  updated bigint := 0;
  batches bigint := 0;
  first_key bigint;
  found_rows bigint;
  found_max bigint;
  statement text;
  reading text := format('select count(*), max(scratch) from %I where mykey between %%s and %%s', tab_name);
  updating text := format('with u as (update %I set scratch = scratch + 1 where mykey between %%s and %%s returning 1, scratch) select count(*), max(scratch) from u', tab_name);
begin
  if prepared then
    execute 'prepare plain_read(bigint, bigint) as ' || format(reading, '$1', '$2');
    execute 'prepare plain_update(bigint, bigint) as ' || format(updating, '$1', '$2');
    reading := 'execute plain_read(%s, %s)';
    updating := 'execute plain_update(%s, %s)';
  end if;
  loop
    first_key := 1 + (random() * (tab_rows - batch_size))::bigint;
    if 100 * (updated + batch_size / 2) / (total + batch_size) < pct_update then
      statement := format(updating, first_key, first_key + batch_size - 1);
      updated := updated + batch_size;
    else
      statement := format(reading, first_key, first_key + batch_size - 1);
    end if;
    execute statement into found_rows, found_max;
    commit;
    total := total + found_rows;
    batches := batches + 1;
    rows_per_s := total / date_part('epoch', clock_timestamp() - started);
    raise notice '% rows/s on %, batch#: %, total: % rows read, % %% updated, last: % rows between % and %',
      to_char(rows_per_s, '99999999'), tab_name, batches, total, to_char(100.0 * updated / total, '999.9'),
      found_rows, first_key + batch_size, first_key;
    exit when clock_timestamp() > started + run_s * interval '1 second';
  end loop;
  if prepared then
    deallocate plain_read;
    deallocate plain_update;
  end if;
end $$;
