-- ybio.sql: random row reads and updates per second (RIOPS), measured inside the database.
--
--   psql -f ybio.sql
--   call setup(tab_rows=>1e6::int, batch_size=>10000);
--   call runit(run_duration=>interval '1 minute', pct_update=>10, batch_size=>1000);
--   select * from benchruns order by job_id desc;
--
-- Installs into the current schema: the procedures setup and runit, the table benchruns, and the routines
-- ybio_loop and ybio_report that runit uses. Plain SQL and PL/pgSQL for PostgreSQL 11 and later and for
-- PostgreSQL-compatible databases; YugabyteDB's clauses are used if version() reports it (not yet tested
-- on a live YugabyteDB).
--
-- A batch is one transaction with one statement over a range of consecutive keys, whose rows are scattered
-- over the table. The statement is planned once (prepared=>true) or parsed and planned each time. It must
-- reach its rows through the index: runit checks the plan before the first batch and warns if it differs.
-- During a run it changes the planner settings to enforce this plan, and restores the session's settings
-- at the end. After a failed run they are restored at the end of the session's next run, or by RESET ALL.
--
-- This file is part of riops: `riops run rows --loop server` uses the same ybio_loop.

create table if not exists benchruns (
  job_id serial primary key,
  start_time timestamp,
  end_time timestamp,
  num_batches bigint,
  num_rows bigint,
  pct_update int,
  max_scratch bigint,
  prepared boolean,
  index_only boolean,
  tab_rows bigint,
  batch_size bigint,
  table_name text,
  table_rows bigint,
  table_scratch bigint,
  comments text
);
-- A table of the original ybio keeps its rows and gets the missing columns.
alter table benchruns add column if not exists comments text;
alter table benchruns add column if not exists updated_rows bigint;
alter table benchruns add column if not exists retries bigint;
alter table benchruns add column if not exists p50_ms float8;
alter table benchruns add column if not exists p99_ms float8;
alter table benchruns add column if not exists max_ms float8;
alter table benchruns add column if not exists access_path text;

-- Next to the procedures of another version, with other parameters, calls would be ambiguous.
do $earlier$
declare
  earlier regprocedure;
begin
  for earlier in
    select oid::regprocedure from pg_proc
     where pronamespace = quote_ident(current_schema())::regnamespace and proname in ('setup', 'runit')
       and proargnames[1] = 'tab_prefix'
  loop
    execute format('drop procedure %s', earlier);
  end loop;
end;
$earlier$;

create or replace procedure setup(
  tab_prefix text default 'bench',
  tab_num int default 1,
  tab_rows bigint default 1e6,
  batch_size bigint default 1000,
  tab_tablets int default 0,
  ind_tablets int default 0,
  index_as_pk boolean default false,
  filler int default 1,
  recreate boolean default true,
  orderby text default 'scratch'
) language plpgsql as $setup$
declare
  tab_name text := tab_prefix || to_char(tab_num, 'fm0000');
  index_name text := tab_name || '_asc_mykey';
  is_yugabytedb boolean := version() like '%-YB-%';
  batches bigint;
  loaded bigint := 0;
  done bigint;
  split_table text := '';
  split_index text := '';
  -- In each of these, OFFSET 0 prevents the planner from evaluating random() again.
  numbers text := 'select mykey, floor(random() * ($2 + 1))::bigint as scratch
                     from generate_series($1::bigint, $2::bigint, $3::bigint) as mykey offset 0';
  -- Adds the filler: an md5 for each row, repeated to the length of char(n), which is faster than truncating a longer
  -- text. The first digit alone is one of 16 values with equal probabilities: to_hex takes a sixth of the time of md5.
  filled text := case when filler = 1
    then 'select mykey, scratch, to_hex(floor(random() * 16)::int)::char(1) as filler from (%s) as unfilled offset 0'
    else format('select mykey, scratch, (repeat(digest, %s) || left(digest, %s))::char(%s) as filler
                   from (select mykey, scratch, md5(random()::text) as digest from (%%s) as unfilled offset 0) as digests
                 offset 0', filler / 32, filler % 32, filler) end;
  source text;
  sort text := '';
  leftover text;
  began timestamptz;
  loaded_at timestamptz;
  noticed timestamptz;
begin
  if (tab_rows >= 1 and batch_size >= 1 and tab_num between 0 and 9999) is not true then
    raise exception 'tab_rows (%) and batch_size (%) must be at least 1, and tab_num (%) between 0 and 9999',
      tab_rows, batch_size, tab_num;
  end if;
  if (filler >= 1) is not true then
    raise exception 'filler must be at least 1, not %', filler;
  end if;
  -- Rounded up: the last batch may be smaller.
  batches := (tab_rows + batch_size - 1) / batch_size;
  if orderby is not null then
    sort := ' order by ' || orderby;
  end if;
  begin
    execute 'select mykey, scratch from (values (1::bigint, 1::bigint)) as generated (mykey, scratch)' || sort;
    -- The filler is added after the sort, which thus moves fewer bytes.
    source := format(filled, format('select * from (%s) as generated%s', numbers, sort));
  exception when undefined_column or invalid_column_reference then
    -- Sorts by the filler. An invalid expression is reported here, before the old table is dropped.
    source := format('select * from (%s) as generated%s', format(filled, numbers), sort);
    execute source using 1, 1, 1;
  end;
  if is_yugabytedb then
    if ind_tablets > 1 then
      select ' split at values (' || string_agg(format('(%s)', 1 + part * tab_rows / ind_tablets), ',' order by part) || ')'
        into split_index from generate_series(1, ind_tablets - 1) as part;
    end if;
    if tab_tablets > 0 then
      split_table := format(' split into %s tablets', tab_tablets);
    end if;
  elsif tab_tablets > 0 or ind_tablets > 0 then
    raise notice 'tab_tablets and ind_tablets are ignored: they require YugabyteDB';
  end if;
  if recreate and to_regclass(quote_ident(tab_name)) is not null then
    -- The view left behind by a killed run would prevent the drop of the table.
    for leftover in
      select distinct format('%I.%I', n.nspname, v.relname)
        from pg_depend d join pg_rewrite r on r.oid = d.objid join pg_class v on v.oid = r.ev_class
          join pg_namespace n on n.oid = v.relnamespace
       where d.refobjid = to_regclass(quote_ident(tab_name)) and v.relkind = 'v' and v.relname = 'ybio_rows'
         and n.nspname like 'pg_temp%'
    loop
      execute format('drop view %s', leftover);
    end loop;
    execute format('drop table %I', tab_name);
  end if;
  -- On YugabyteDB a table is stored by its primary key, and an index is best created before the load. On
  -- PostgreSQL it is faster to create the index after the load.
  execute format('create table if not exists %I (mykey bigint%s, scratch bigint, filler char(%s)%s)%s',
    tab_name, case when index_as_pk then ' not null' else '' end, filler,
    case when index_as_pk and is_yugabytedb then ', primary key (mykey asc)' else '' end,
    case when index_as_pk then split_index else split_table end);
  if is_yugabytedb and not index_as_pk then
    execute format('create index nonconcurrently if not exists %I on %I (mykey asc)%s', index_name, tab_name, split_index);
  end if;
  commit;
  raise notice 'Inserting % rows in % batches of %', tab_rows, batches, batch_size;
  began := clock_timestamp();
  noticed := began;
  for batch in 1..batches loop
    execute format('insert into %I (mykey, scratch, filler) %s', tab_name, source) using batch, tab_rows, batches;
    get diagnostics done = row_count;
    commit;
    loaded := loaded + done;
    if batch = batches or clock_timestamp() >= noticed + interval '1 second' then
      noticed := clock_timestamp();
      raise notice 'Table % Progress: % %% (% rows)', tab_name,
        to_char(100.0 * loaded / tab_rows, '999.99'), loaded;
    end if;
  end loop;
  loaded_at := clock_timestamp();
  if not is_yugabytedb and not index_as_pk then
    execute format('create index if not exists %I on %I (mykey asc)', index_name, tab_name);
  elsif not is_yugabytedb and not exists (
    select 1 from pg_index where indrelid = to_regclass(quote_ident(tab_name)) and indisprimary)
  then
    execute format('alter table %I add primary key (mykey)', tab_name);
  end if;
  raise notice 'Table % loaded: % rows/s, and % s for the index', tab_name,
    round(loaded / greatest(date_part('epoch', loaded_at - began), 1e-6)),
    round(date_part('epoch', clock_timestamp() - loaded_at)::numeric, 1);
  execute format('analyze %I', tab_name);
end;
$setup$;

-- loop: begin (riops installs only the part between this marker and the one below)

-- Returns the state of a loop as JSON. Latencies are counted in buckets of 2 %: bucket b is centered on
-- exp((b - 1) / 50) microseconds. Reads use buckets 1 to 1200 of the histogram, updates 1201 to 2400.
-- `all` counts everything committed, the other fields only the measurement.
create or replace function ybio_report(
  call_id text, intervals bigint, measure_s float8, ended_s float8, histogram bigint[],
  longest_us float8[], measured_rows bigint[], all_counts bigint[], lost_rows bigint, announced bigint,
  max_scratch bigint, conflicts bigint, deadlocks bigint, seen json[]
) returns json language sql immutable as $report$
  select json_build_object(
    'call', call_id, 'intervals', intervals, 'measure_s', measure_s, 'ended_s', ended_s,
    'reads', json_build_object('rows', measured_rows[1], 'longest_us', longest_us[1], 'buckets',
      (select coalesce(json_agg(json_build_array(bucket, histogram[bucket]) order by bucket), '[]')
         from generate_series(1, 1200) as bucket where histogram[bucket] > 0)),
    'updates', json_build_object('rows', measured_rows[2], 'longest_us', longest_us[2], 'buckets',
      (select coalesce(json_agg(json_build_array(bucket - 1200, histogram[bucket]) order by bucket), '[]')
         from generate_series(1201, 2400) as bucket where histogram[bucket] > 0)),
    'all', json_build_object('batches', all_counts[1], 'updates', all_counts[2],
      'read_rows', all_counts[3], 'updated_rows', all_counts[4]),
    'lost_rows', lost_rows, 'announced', announced, 'max_scratch', max_scratch,
    'conflicts', conflicts, 'deadlocks', deadlocks, 'drained_us', longest_us[3], 'seen', to_json(seen))
$report$;

-- Repeats batches, one transaction each, from start_s on. Batches that end between measure_s and until_s
-- are measured (all times are seconds since 1970 on this server's clock). With a limit on the count instead
-- of an end time, batches_max batches are measured, or as many as are needed for rows_max rows. At least
-- one batch is executed.
--
-- With detail, progress is reported as JSON in the DETAIL of a notice: every report_s seconds, and before
-- more rows are updated than the last report announced. A client that loses the connection thus knows the
-- maximum number of updates. Without detail, progress is the line that runit prints, the time starts
-- with the first batch, and the last batch is measured although it ends after until_s.
--
-- looks are EXPLAIN statements, executed once when half of the work is done. result returns the last
-- report. If the server itself runs a call again, it continues from the last report, which is stored in the
-- session setting ybio.state.
create or replace procedure ybio_loop(
  call_id text, tab_name text, tab_rows bigint, batch_size bigint, update_batch bigint,
  pct_update int, pct_of_rows boolean, prepared boolean, index_only boolean,
  start_s float8, measure_s float8, until_s float8, batches_max bigint, rows_max bigint,
  seed float8, report_s float8, retries_max int, detail boolean, looks text[], inout result json
) language plpgsql as $loop$
declare
  latest json := nullif(current_setting('ybio.state', true), '')::json;
  counted text := case when index_only then 'mykey' else 'scratch' end;
  changed text := case when index_only then 'mykey = mykey' else 'scratch = scratch + 1' end;
  reading text := format('select count(*), max(%I) from %s where mykey between ', counted, tab_name);
  writing text := format('with updated as (update %s set %s where mykey between ', tab_name, changed);
  written text := format(' returning 1, %I) select count(*), max(%1$I) from updated', counted);
  kind int := case when not prepared then 3 when index_only then 2 else 1 end;
  -- On some servers random() returns only 2^31 different values, too few for so many keys.
  many_keys boolean := tab_rows > 1000000000;
  read_starts bigint := greatest(tab_rows - batch_size + 1, 1);
  update_starts bigint := greatest(tab_rows - update_batch + 1, 1);
  unbounded bigint := 9223372036854775807;
  first_key bigint;
  last_key bigint;
  found_rows bigint;
  found_max bigint;
  began float8;
  ended float8;
  bucket int;
  -- Reads in 1 to 1200, updates in 1201 to 2400. This and the next five variables cover the measurement
  -- only.
  histogram bigint[] := array_fill(0::bigint, array[2400]);
  longest_read float8 := 0;
  longest_update float8 := 0;
  max_scratch bigint := 0;
  conflicts bigint := 0;
  deadlocks bigint := 0;
  -- Totals of the whole call.
  batches bigint := 0;
  updates bigint := 0;
  read_rows bigint := 0;
  updated_rows bigint := 0;
  attempts int;
  failed boolean;
  -- Rows of these totals that were not measured.
  before_read bigint := 0;
  before_updated bigint := 0;
  lost_rows bigint := 0;
  -- When something other than the next batch is due.
  border float8 := measure_s;
  batches_due bigint := unbounded;
  rows_due bigint := unbounded;
  batches_end bigint := unbounded;
  rows_end bigint := unbounded;
  look_s float8 := (measure_s + until_s) / 2;
  announced bigint := unbounded;
  announce_at bigint := unbounded;
  reported bigint := 0;
  -- A client with detail checks the number of rows itself. A variable, because the loop compares it in every turn.
  warned_below bigint := case when detail then 0 else least(batch_size, update_batch) end;
  intervals bigint := 0;
  noticed float8 := 0;
  look text;
  plan json;
  seen json[] := '{}';
  drained_us float8;
  measuring boolean := false;
  last boolean := false;
begin
  if latest->>'call' = call_id then
    batches := (latest #>> '{all,batches}')::bigint;
    updates := (latest #>> '{all,updates}')::bigint;
    read_rows := (latest #>> '{all,read_rows}')::bigint;
    updated_rows := (latest #>> '{all,updated_rows}')::bigint;
    lost_rows := (latest ->> 'lost_rows')::bigint + (latest ->> 'announced')::bigint - updated_rows;
    reported := updated_rows;
  end if;
  if detail and pct_update > 0 then
    announced := updated_rows + 10 * update_batch;
    announce_at := announced - 2 * update_batch;
  end if;
  if prepared then
    -- Static statements on a view with a fixed name are planned once, for any table.
    execute format('create or replace temporary view ybio_rows as select mykey, scratch from %s', tab_name);
  end if;
  if seed is not null then
    perform setseed(seed);
  end if;
  if detail then
    perform set_config('ybio.state', ybio_report(call_id, 0, measure_s, measure_s, histogram, '{}', '{}',
      array[batches, updates, read_rows, updated_rows], lost_rows, announced, 0, 0, 0, seen)::text, false);
  end if;
  commit;
  perform pg_sleep(greatest(start_s - date_part('epoch', clock_timestamp()), 0));
  commit;
  began := date_part('epoch', clock_timestamp());
  if not detail then
    -- There are no other sessions to wait for: the setup above is not part of the run time.
    until_s := until_s + began - start_s;
    start_s := began;
    measure_s := began;
    border := began;
  end if;
  -- Each transaction initializes every PL/pgSQL expression again, so the loop has as few as possible.
  loop
    -- The share of updates is deterministic, not random: the next batch is an update if the updated share
    -- at the middle of that update is below the requested share.
    if pct_update > 0 and (case when pct_of_rows
      then 100 * (2 * updated_rows + update_batch) < 2 * pct_update * (read_rows + updated_rows + update_batch)
      else 100 * (2 * updates + 1) < 2 * pct_update * (batches + 1) end)
    then
      first_key := 1 + least(update_starts - 1, floor(update_starts * case when many_keys
        then (floor(random() * 1073741824) + random()) / 1073741824 else random() end)::bigint);
      last_key := first_key + update_batch - 1;
      attempts := 0;
      loop
        failed := false;
        begin
          if kind = 1 then
            with updated as (
              update pg_temp.ybio_rows set scratch = scratch + 1
               where mykey between first_key and last_key returning 1, scratch
            ) select count(*), max(scratch) into found_rows, found_max from updated;
          elsif kind = 2 then
            with updated as (
              update pg_temp.ybio_rows set mykey = mykey
               where mykey between first_key and last_key returning 1, mykey
            ) select count(*), max(mykey) into found_rows, found_max from updated;
          else
            execute writing || first_key || ' and ' || last_key || written into found_rows, found_max;
          end if;
        exception when serialization_failure or deadlock_detected then
          attempts := attempts + 1;
          if attempts > retries_max then
            raise;
          end if;
          failed := true;
          if sqlstate = '40P01' then
            deadlocks := deadlocks + 1;
          else
            conflicts := conflicts + 1;
          end if;
        end;
        exit when not failed;
        -- The next attempt needs a new snapshot.
        rollback;
      end loop;
      commit;
      ended := date_part('epoch', clock_timestamp());
      bucket := 1201 + least(50 * ln(greatest((ended - began) * 1e6, 1)), 1199)::int;
    else
      first_key := 1 + least(read_starts - 1, floor(read_starts * case when many_keys
        then (floor(random() * 1073741824) + random()) / 1073741824 else random() end)::bigint);
      last_key := first_key + batch_size - 1;
      if kind = 1 then
        select count(*), max(scratch) into found_rows, found_max
          from pg_temp.ybio_rows where mykey between first_key and last_key;
      elsif kind = 2 then
        select count(*), max(mykey) into found_rows, found_max
          from pg_temp.ybio_rows where mykey between first_key and last_key;
      else
        execute reading || first_key || ' and ' || last_key into found_rows, found_max;
      end if;
      commit;
      ended := date_part('epoch', clock_timestamp());
      bucket := 1 + least(50 * ln(greatest((ended - began) * 1e6, 1)), 1199)::int;
    end if;

    if ended >= border or updated_rows > announce_at or batches + 1 >= batches_due
      or read_rows + updated_rows + found_rows >= rows_due
      or found_rows < warned_below
    then
      -- This batch is not counted yet: all counted batches ended before it.
      if not measuring then
        -- Everything so far was the warm-up, which is not measured.
        before_read := read_rows;
        before_updated := updated_rows;
        histogram := array_fill(0::bigint, array[2400]);
        longest_read := 0;
        longest_update := 0;
        max_scratch := 0;
        conflicts := 0;
        deadlocks := 0;
      end if;
      if not measuring and ended >= measure_s then
        measuring := true;
        batches_end := coalesce(batches + batches_max, unbounded);
        rows_end := coalesce(read_rows + updated_rows + rows_max, unbounded);
        batches_due := case when looks is null then batches_end else coalesce(batches + batches_max / 2, unbounded) end;
        rows_due := case when looks is null then rows_end else coalesce(read_rows + updated_rows + rows_max / 2, unbounded) end;
      end if;
      if detail and ended >= until_s then
        -- The batch was committed, but ended too late to be measured.
        histogram[bucket] := histogram[bucket] - 1;
        if bucket > 1200 then
          before_updated := before_updated + found_rows;
        else
          before_read := before_read + found_rows;
        end if;
        found_max := null;
        drained_us := 1e6 * (ended - began);
        began := ended;
      end if;
      if found_rows < warned_below then
        raise warning 'only % of % rows have keys from % to % in %', found_rows, last_key - first_key + 1,
          first_key, last_key, tab_name;
      end if;
      last := ended >= until_s or batches + 1 >= batches_end or read_rows + updated_rows + found_rows >= rows_end;
      if measuring then
        intervals := floor((least(ended, until_s) - measure_s) / report_s);
      end if;
      if detail and not last then
        if pct_update > 0 then
          announced := updated_rows + greatest(2 * (updated_rows - reported), 10 * update_batch);
          announce_at := announced - 2 * update_batch;
          reported := updated_rows;
        end if;
        result := ybio_report(call_id, intervals, measure_s, ended, histogram,
          array[1e6 * longest_read, 1e6 * longest_update],
          array[read_rows - before_read, updated_rows - before_updated],
          array[batches, updates, read_rows, updated_rows], lost_rows, announced, max_scratch,
          conflicts, deadlocks, seen);
        perform set_config('ybio.state', result::text, false);
        raise notice using message = 'progress', detail = result::text;
        commit;
      elsif not detail and (last or ended >= noticed + 1) then
        noticed := ended;
        raise notice '%', format(
          '%8s rows/s on %s, job: %6s batch#: %5s, total: %12s rows read, %s %% updated, last: %s rows between %7s and %s',
          round((read_rows + updated_rows + found_rows) / greatest(ended - start_s, 1e-6))::bigint,
          tab_name, call_id, batches + 1, read_rows + updated_rows + found_rows,
          to_char(100.0 * (updated_rows + case when bucket > 1200 then found_rows else 0 end)
            / greatest(read_rows + updated_rows + found_rows, 1), '999.9'),
          found_rows, last_key, first_key);
      end if;
      if measuring and looks is not null and not last
        and (ended >= look_s or batches + 1 >= batches_due or read_rows + updated_rows + found_rows >= rows_due)
      then
        foreach look in array looks loop
          execute look into plan;
          seen := seen || plan;
        end loop;
        commit;
        looks := null;
        batches_due := batches_end;
        rows_due := rows_end;
      end if;
      if not last then
        -- The time for the report and for EXPLAIN does not count as batch time.
        began := began + date_part('epoch', clock_timestamp()) - ended;
        ended := date_part('epoch', clock_timestamp());
      end if;
      border := case
        when not measuring then measure_s
        when looks is null then least(until_s, measure_s + (intervals + 1) * report_s)
        else least(until_s, measure_s + (intervals + 1) * report_s, look_s) end;
    end if;

    histogram[bucket] := histogram[bucket] + 1;
    batches := batches + 1;
    if bucket > 1200 then
      updates := updates + 1;
      updated_rows := updated_rows + found_rows;
      if found_max > max_scratch or ended - began > longest_update then
        max_scratch := greatest(max_scratch, found_max);
        longest_update := greatest(longest_update, ended - began);
      end if;
    else
      read_rows := read_rows + found_rows;
      if found_max > max_scratch or ended - began > longest_read then
        max_scratch := greatest(max_scratch, found_max);
        longest_read := greatest(longest_read, ended - began);
      end if;
    end if;
    exit when last;
    began := ended;
  end loop;
  -- On YugabyteDB, each DROP changes the version of the catalog and interrupts the other sessions. The view ends with
  -- its session.
  if prepared and version() not like '%-YB-%' then
    -- Temporary relations come first. With the name of their schema, the statement fails on Citus.
    drop view ybio_rows;
  end if;
  perform set_config('ybio.state', '', false);
  result := ybio_report(call_id, intervals, measure_s, ended, histogram,
    array[1e6 * longest_read, 1e6 * longest_update, drained_us],
    array[read_rows - before_read, updated_rows - before_updated],
    array[batches, updates, read_rows, updated_rows], lost_rows, updated_rows, max_scratch,
    conflicts, deadlocks, seen);
end;
$loop$;

-- loop: end

create or replace procedure runit(
  tab_prefix text default 'bench',
  tab_num int default 1,
  tab_rows bigint default 1e6,
  batch_size bigint default 1e4,
  run_duration interval default interval '1 minute',
  pct_update int default 0,
  prepared boolean default true,
  index_only boolean default false,
  initial_count boolean default false,
  comments text default null
) language plpgsql as $runit$
declare
  tab_name text := tab_prefix || to_char(tab_num, 'fm0000');
  batch bigint := least(batch_size, tab_rows);
  wanted json := json_build_object(
    'enable_seqscan', 'off', 'enable_bitmapscan', 'off', 'enable_indexscan', 'on',
    'enable_indexonlyscan', case when index_only then 'on' else 'off' end,
    'max_parallel_workers_per_gather', '0', 'jit', 'off', 'plan_cache_mode', 'force_generic_plan');
  former json := nullif(current_setting('ybio.former_settings', true), '')::json;
  job int;
  highest_key bigint;
  counted_rows bigint;
  counted_scratch bigint;
  plan json;
  path text;
  start_s float8;
  result json;
begin
  if to_regclass(quote_ident(tab_name)) is null then
    raise exception 'table "%" does not exist: create it with call setup(tab_prefix=>%, tab_num=>%)',
      tab_name, quote_literal(tab_prefix), tab_num;
  end if;
  if (tab_rows >= 1 and batch_size >= 1) is not true then
    raise exception 'tab_rows (%) and batch_size (%) must be at least 1', tab_rows, batch_size;
  end if;
  if (pct_update between 0 and 100) is not true then
    raise exception 'pct_update must be between 0 and 100, not %', pct_update;
  end if;
  if run_duration is null or tab_num not between 0 and 9999 then
    raise exception 'run_duration must not be null, and tab_num (%) must be between 0 and 9999', tab_num;
  end if;
  -- The highest key is at the end of the index. Gaps are found by initial_count, or reported by the batches.
  execute format('select max(mykey) from %I', tab_name) into highest_key;
  if initial_count then
    execute format('select count(*), max(scratch) from %I', tab_name) into counted_rows, counted_scratch;
  end if;
  if coalesce(highest_key, 0) < tab_rows or counted_rows < tab_rows then
    raise exception 'table "%" has % with keys up to %, fewer than tab_rows (%): pass the number of rows that setup created',
      tab_name, coalesce(counted_rows || ' rows', 'rows'), coalesce(highest_key, 0), tab_rows;
  end if;
  if former is null then
    select json_object_agg(name, setting) into former
      from pg_settings where name in (select json_object_keys(wanted));
    perform set_config('ybio.former_settings', former::text, false);
  end if;
  perform set_config(name, wanted->>name, false) from json_object_keys(former) as name;
  execute format('explain (format json, costs off) select count(*), max(%s) from %I where mykey between 1 and %s',
    case when index_only then 'mykey' else 'scratch' end, tab_name, batch) into plan;
  path := plan #>> '{0,Plan,Plans,0,Node Type}';
  if path <> (case when index_only then 'Index Only Scan' else 'Index Scan' end) then
    raise warning 'access path of table "%" is %, expected %: the result is invalid', tab_name,
      path, case when index_only then 'Index Only Scan' else 'Index Scan' end;
  end if;
  path := path || coalesce(' using ' || (plan #>> '{0,Plan,Plans,0,Index Name}'), '');
  insert into benchruns (start_time, pct_update, prepared, index_only, tab_rows, batch_size, table_name,
                         table_rows, table_scratch, comments, access_path)
  values (clock_timestamp(), pct_update, prepared, index_only, tab_rows, batch, tab_name,
          counted_rows, counted_scratch, comments, path)
  returning job_id into job;
  commit;
  start_s := date_part('epoch', clock_timestamp());
  call ybio_loop(job::text, quote_ident(tab_name), tab_rows, batch, batch, pct_update, true, prepared, index_only,
    start_s, start_s, start_s + date_part('epoch', run_duration), null, null, null, 1, 10, false, null, result);
  update benchruns
     set start_time = to_timestamp((result ->> 'measure_s')::float8),
         end_time = to_timestamp((result ->> 'ended_s')::float8),
         num_batches = (result #>> '{all,batches}')::bigint,
         num_rows = (result #>> '{all,read_rows}')::bigint + (result #>> '{all,updated_rows}')::bigint,
         updated_rows = (result #>> '{all,updated_rows}')::bigint,
         max_scratch = (result ->> 'max_scratch')::bigint,
         retries = (result ->> 'conflicts')::bigint + (result ->> 'deadlocks')::bigint,
         max_ms = round(latency.longest::numeric, 3),
         p50_ms = round(least(latency.p50, latency.longest)::numeric, 3),
         p99_ms = round(least(latency.p99, latency.longest)::numeric, 3)
    from (select min(us) filter (where up_to >= 0.5 * total) / 1000 as p50,
                 min(us) filter (where up_to >= 0.99 * total) / 1000 as p99,
                 greatest((result #>> '{reads,longest_us}')::float8, (result #>> '{updates,longest_us}')::float8) / 1000 as longest
            from (select exp(((entry ->> 0)::int - 1) / 50.0::float8) as us,
                         sum((entry ->> 1)::bigint) over (order by (entry ->> 0)::int) as up_to,
                         sum((entry ->> 1)::bigint) over () as total
                    from (select json_array_elements(result #> '{reads,buckets}')
                          union all
                          select json_array_elements(result #> '{updates,buckets}')) as entries (entry)
                 ) as buckets
         ) as latency
   where job_id = job;
  perform set_config(name, former->>name, false) from json_object_keys(former) as name;
  perform set_config('ybio.former_settings', '', false);
end;
$runit$;
