//! The procedures of `sql/ybio.sql`, called through psql.

use std::process::Command;

use riops::server::Connection;

use crate::fixture::{CommandOutput, Database, database, program};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sql/ybio.sql");

/// A database with the procedures installed.
struct Ybio {
    database: Database,
    connection: Connection,
}

impl Ybio {
    /// Creates the database and installs the procedures. Returns `None` without psql.
    fn install(name: &str) -> Option<Self> {
        program("psql")?;
        let database = database(name);
        let connection = database.connect();
        let ybio = Self { database, connection };
        CommandOutput::run(ybio.psql().args(["-f", FILE])).expect(0);
        Some(ybio)
    }

    fn psql(&self) -> Command {
        let mut psql = Command::new("psql");
        psql.args([&self.database.url, "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"]);
        psql
    }

    /// Returns the notices of a call, without the prefix `NOTICE:`.
    fn notices(&self, call: &str) -> Vec<String> {
        let ran = CommandOutput::run(self.psql().args(["-c", call])).expect(0);
        ran.stderr.lines().map(|line| line.replacen("NOTICE:  ", "", 1)).collect()
    }

    fn value(&mut self, sql: &str) -> String {
        self.connection.query_value(sql).unwrap().unwrap_or_default()
    }
}

#[test]
fn documented_examples_give_the_documented_columns_and_notices() {
    let Some(mut ybio) = Ybio::install("ybio_page") else {
        return;
    };
    let setup = ybio
        .notices("call setup(tab_prefix=>'bench',tab_num=>1,tab_rows=>1e4::int,batch_size=>1000);");
    assert_eq!(
        setup.first().map(String::as_str),
        Some("Inserting 10000 rows in 10 batches of 1000")
    );
    // The line of ybio's page, and then the rate.
    assert_eq!(setup[setup.len() - 2], "Table bench0001 Progress:  100.00 % (10000 rows)");
    let rate = setup.last().unwrap().strip_prefix("Table bench0001 loaded: ").unwrap();
    let (rows_per_s, index) = rate.split_once(" rows/s, and ").unwrap();
    assert!(
        rows_per_s.parse::<u64>().unwrap() > 0 && index.ends_with(" s for the index"),
        "{rate}"
    );
    let run = ybio.notices("call runit(tab_prefix=>'bench',tab_num=>1,tab_rows=>1e4::int,run_duration=>interval '1500 ms',pct_update=>42,batch_size=>1e3::int);");
    // At most one notice per second, and one at the end.
    assert!((2..=3).contains(&run.len()), "{run:?}");
    let (rate, rest) =
        run.last().unwrap().split_once(" rows/s on bench0001, job:      1 batch#: ").unwrap();
    assert!(rate.trim().parse::<u64>().unwrap() > 0);
    let words: Vec<_> = rest.split_whitespace().collect();
    assert_eq!(words[1], "total:");
    assert!(
        rest.contains(" rows read, ") && rest.contains(" % updated, last: 1000 rows between "),
        "{rest}"
    );
    let result = "select end_time-start_time duration,round(num_rows/extract(epoch from end_time-start_time)) riops
      ,round(100*max_scratch::float/table_scratch) as pct_scratch
      , case when num_rows > table_rows then lpad(to_char(num_rows::float/table_rows,'xfmB9990D9'),6)
        else lpad(to_char(100*num_rows/table_rows,'fmB999 %'),6) end coverage
      ,* from benchruns order by job_id desc nulls last limit 10";
    let row = ybio.connection.query(result).unwrap().remove(0);
    assert!(row[0].is_some() && row[1].as_ref().unwrap().parse::<u64>().unwrap() > 0);
    let columns = ybio.value("select string_agg(attname, ' ' order by attnum) from pg_attribute where attrelid = 'benchruns'::regclass and attnum between 1 and 15");
    assert_eq!(
        columns,
        "job_id start_time end_time num_batches num_rows pct_update max_scratch prepared index_only tab_rows batch_size table_name table_rows table_scratch comments"
    );
    let share =
        ybio.value("select abs(updated_rows - 0.42 * num_rows) <= batch_size from benchruns");
    assert_eq!(share, "t");
}

#[test]
fn keys_are_exactly_1_to_rows_for_every_batch_size() {
    let Some(mut ybio) = Ybio::install("ybio_keys") else {
        return;
    };
    for (rows, batch, batches, options) in [
        (1003, 100, 11, ""),
        (10, 3, 4, ", index_as_pk=>true"),
        (500, 500, 1, ", orderby=>null"),
        (7, 1000, 1, ", orderby=>'mykey % 3', filler=>50"),
        (1, 1, 1, ""),
    ] {
        let notices = ybio.notices(&format!(
            "call setup(tab_num=>7, tab_rows=>{rows}, batch_size=>{batch}{options})"
        ));
        assert_eq!(notices[0], format!("Inserting {rows} rows in {batches} batches of {batch}"));
        let keys = ybio.value("select count(*) || ' ' || min(mykey) || ' ' || max(mykey) || ' ' || count(distinct mykey) || ' ' || (min(scratch) >= 0 and max(scratch) <= count(*)) from bench0007");
        assert_eq!(keys, format!("{rows} 1 {rows} {rows} true"));
        // A batch larger than the table is reduced to one range with all rows.
        ybio.notices(&format!(
            "call runit(tab_num=>7, tab_rows=>{rows}, batch_size=>{}, run_duration=>interval '0')",
            rows * 5
        ));
        let run = ybio.value("select num_batches || ' ' || num_rows || ' ' || batch_size from benchruns order by job_id desc limit 1");
        assert_eq!(run, format!("1 {rows} {rows}"));
    }
}

#[test]
fn setup_without_recreate_adds_rows_to_the_table() {
    let Some(mut ybio) = Ybio::install("ybio_added") else {
        return;
    };
    ybio.notices("call setup(tab_rows=>100, batch_size=>10)");
    ybio.notices("call setup(tab_rows=>50, batch_size=>10, recreate=>false)");
    assert_eq!(
        ybio.value("select count(*) || ' ' || count(distinct mykey) from bench0001"),
        "150 100"
    );
}

#[test]
fn filler_repeats_an_md5_per_row() {
    let Some(mut ybio) = Ybio::install("ybio_filler") else {
        return;
    };
    // Shorter than one md5, whole repetitions, a part of one, and larger than a page.
    for length in [2, 31, 32, 64, 100, 1000, 10_000] {
        ybio.notices(&format!("call setup(tab_rows=>300, batch_size=>100, filler=>{length})"));
        let fillers = ybio.value(&format!(
            "select count(distinct left(filler::text, 32)) || ' ' || min(length(filler)) || ' ' || max(length(filler)) || ' ' ||
                    bool_and(filler::text ~ '^[0-9a-f]+$' and filler::text = rpad('', {length}, left(filler::text, 32))) from bench0001"
        ));
        // With 256 values, all of them different is impossible.
        let distinct = if length == 2 { fillers.split(' ').next().unwrap() } else { "300" };
        assert_eq!(fillers, format!("{distinct} {length} {length} true"));
        assert!((100..=300).contains(&distinct.parse::<u32>().unwrap()), "{distinct}");
    }
    // A value above about 2,000 bytes is compressed: the repetitions take next to no space.
    assert_eq!(ybio.value("select max(pg_column_size(filler)) < 500 from bench0001"), "t");
    ybio.notices("call setup(tab_rows=>1000, batch_size=>1000)");
    assert_eq!(
        ybio.value(
            "select string_agg(distinct filler::text, '' order by filler::text) from bench0001"
        ),
        "0123456789abcdef"
    );
}

#[test]
fn rows_are_sorted_by_the_given_expression() {
    let Some(mut ybio) = Ybio::install("ybio_order") else {
        return;
    };
    for (orderby, expression) in [
        ("'scratch'", "scratch"),
        ("null", "mykey"),
        ("'filler'", "filler"),
        ("'left(filler::text, 3), mykey'", "left(filler::text, 3), mykey"),
        ("'mykey % 7, scratch'", "mykey % 7, scratch"),
    ] {
        for filler in [1, 40] {
            ybio.notices(&format!(
                "call setup(tab_rows=>500, batch_size=>500, filler=>{filler}, orderby=>{orderby})"
            ));
            let unsorted = ybio.value(&format!(
                "select count(*) from (select row_number() over (order by ctid) - rank() over (order by {expression}) as difference,
                                              count(*) over (partition by {expression}) as equal from bench0001) as places
                  where difference not between 0 and equal - 1"
            ));
            assert_eq!(unsorted, "0", "{orderby}, filler {filler}");
        }
    }
    // The table survives an invalid expression.
    for (orderby, error) in
        [("'nothing'", "column \"nothing\" does not exist"), ("'1 2'", "syntax error")]
    {
        let call = format!("call setup(tab_rows=>10, orderby=>{orderby})");
        CommandOutput::run(ybio.psql().args(["-c", &call])).expect(1).stderr_contains(error);
    }
    assert_eq!(ybio.value("select count(*) from bench0001"), "500");
}

#[test]
fn tables_and_indexes_have_the_documented_names_and_plans() {
    let Some(mut ybio) = Ybio::install("ybio_names") else {
        return;
    };
    ybio.notices("call setup(tab_rows=>20000, batch_size=>10000)");
    ybio.notices("call setup(tab_prefix=>'other', tab_num=>12, tab_rows=>100, index_as_pk=>true, tab_tablets=>3, ind_tablets=>2)");
    let names = ybio.value("select string_agg(indexdef, ' | ' order by indexname) from pg_indexes where schemaname = current_schema() and tablename ~ '^(bench|other)[0-9]'");
    assert_eq!(
        names,
        "CREATE INDEX bench0001_asc_mykey ON public.bench0001 USING btree (mykey) | \
         CREATE UNIQUE INDEX other0012_pkey ON public.other0012 USING btree (mykey)"
    );
    ybio.notices("call runit(tab_prefix=>'other', tab_num=>12, tab_rows=>100, batch_size=>10, run_duration=>interval '0')");
    ybio.connection.execute("vacuum bench0001").unwrap();
    // The statements of ybio's page. For so few rows, PostgreSQL prefers a bitmap scan, which runit disables.
    ybio.connection.execute("set enable_bitmapscan = off").unwrap();
    for (statement, plan) in [
        (
            "select count(*),sum(scratch) from bench0001 where mykey between 1 and 10",
            "Index Scan using bench0001_asc_mykey on public.bench0001",
        ),
        (
            "select count(*),sum(mykey) from bench0001 where mykey between 1 and 10",
            "Index Only Scan using bench0001_asc_mykey on public.bench0001",
        ),
        (
            "with u as (update bench0001 set scratch=scratch+1 where mykey between 1 and 10 returning 1,scratch) select count(*),max(scratch) from u",
            "Index Scan using bench0001_asc_mykey on public.bench0001",
        ),
    ] {
        let explained =
            ybio.connection.query(&format!("explain (analyze, verbose) {statement}")).unwrap();
        assert!(
            explained.iter().flatten().flatten().any(|line| line.contains(plan)),
            "{explained:?}"
        );
    }
}

#[test]
fn replaces_an_installed_original_and_keeps_its_results() {
    let Some(mut ybio) = Ybio::install("ybio_replaced") else {
        return;
    };
    // Procedures with fewer or other parameters, and a table without the later columns. An unrelated procedure stays.
    ybio.connection
        .execute(
            "drop procedure setup;
             drop procedure runit;
             drop table benchruns;
             create procedure setup(tab_prefix text default 'bench', tab_num int default 1, batches bigint default 0) language sql as 'select 1';
             create procedure setup(unrelated int) language sql as 'select 1';
             create procedure runit(tab_prefix text default 'bench', tab_num int default 1, tab_rows bigint default 1e6, batch_size bigint default 1e4,
               run_duration interval default '1 minute', pct_update int default 0, prepared boolean default true, index_only boolean default false,
               initial_count boolean default false) language sql as 'select 1';
             create table benchruns (job_id serial, start_time timestamp, end_time timestamp, num_batches int, num_rows bigint, pct_update int,
               max_scratch bigint, prepared boolean, index_only boolean, tab_rows int, batch_size int, table_name text, table_rows bigint,
               table_scratch bigint, primary key (job_id));
             insert into benchruns (num_rows) values (77)",
        )
        .unwrap();
    for _ in 0..2 {
        CommandOutput::run(ybio.psql().args(["-f", FILE])).expect(0);
        ybio.notices("call setup(tab_rows=>100)");
        ybio.notices("call runit(tab_rows=>100, run_duration=>interval '0', comments=>'second')");
    }
    assert_eq!(
        ybio.value("select string_agg(num_rows || coalesce(' ' || comments, ''), ', ' order by job_id) from benchruns"),
        "77, 100 second, 100 second"
    );
    assert_eq!(ybio.value("select count(*) from pg_proc where proname in ('setup', 'runit')"), "3");
}

#[test]
fn updates_the_requested_share_of_rows_and_loses_no_increment() {
    let Some(mut ybio) = Ybio::install("ybio_updates") else {
        return;
    };
    ybio.notices("call setup(tab_rows=>2000, batch_size=>500)");
    let mut before: i64 = ybio.value("select sum(scratch) from bench0001").parse().unwrap();
    for (pct, options) in
        [(0, ""), (42, ""), (100, ""), (100, ", prepared=>false"), (60, ", index_only=>true")]
    {
        ybio.notices(&format!("call runit(tab_rows=>2000, batch_size=>10, pct_update=>{pct}, run_duration=>interval '200 ms'{options}, initial_count=>true)"));
        let row = ybio.connection.query("select num_batches, num_rows, updated_rows, table_rows, retries, p50_ms <= p99_ms and p99_ms <= max_ms * 1.02, access_path from benchruns order by job_id desc limit 1").unwrap().remove(0);
        let column = |at: usize| row[at].as_ref().unwrap().parse::<i64>().unwrap();
        assert_eq!((column(0) * 10, column(3), column(4)), (column(1), 2000, 0), "{pct}{options}");
        assert!((column(2) * 100 - column(1) * pct).abs() <= 10 * 100, "{pct}{options}: {row:?}");
        assert_eq!(row[5].as_deref(), Some("t"), "{row:?}");
        let index_only = options.contains("index_only");
        assert_eq!(
            row[6].as_deref(),
            Some(if index_only {
                "Index Only Scan using bench0001_asc_mykey"
            } else {
                "Index Scan using bench0001_asc_mykey"
            })
        );
        let after: i64 = ybio.value("select sum(scratch) from bench0001").parse().unwrap();
        assert_eq!(after - before, if index_only { 0 } else { column(2) }, "{pct}{options}");
        before = after;
    }
}

#[test]
fn draws_keys_above_two_billion_from_the_whole_range() {
    let Some(mut ybio) = Ybio::install("ybio_large") else {
        return;
    };
    ybio.notices("call setup(tab_rows=>10, batch_size=>10)");
    // The table has only a few rows. The notices show which keys were drawn.
    ybio.connection.execute("insert into bench0001 values (3000000000, 1, '')").unwrap();
    let mut keys = Vec::new();
    for _ in 0..40 {
        let notices = ybio.notices(
            "call runit(tab_rows=>3000000000, batch_size=>1000, run_duration=>interval '0')",
        );
        let (_, between) = notices.last().unwrap().split_once(" rows between ").unwrap();
        let (last, first) = between.split_once(" and ").unwrap();
        let (first, last): (u64, u64) = (first.parse().unwrap(), last.trim().parse().unwrap());
        assert_eq!(last - first, 999);
        assert!(first >= 1 && last <= 3_000_000_000);
        keys.push(first);
    }
    // With 40 draws, the probability that one half gets none is 2^-39.
    assert!(
        keys.iter().any(|&key| key > 1_500_000_000) && keys.iter().any(|&key| key <= 1_500_000_000)
    );
    assert_eq!(
        ybio.value(
            "select count(*) from benchruns where num_rows < 1000 and tab_rows = 3000000000"
        ),
        "40"
    );
}

#[test]
fn a_table_with_fewer_rows_is_refused_and_a_gap_is_reported() {
    let Some(mut ybio) = Ybio::install("ybio_fewer") else {
        return;
    };
    ybio.notices("call setup(tab_rows=>1000, batch_size=>1000)");
    let refused = |ybio: &Ybio, options: &str| {
        let call =
            format!("call runit(tab_rows=>{options}, batch_size=>10, run_duration=>interval '0')");
        CommandOutput::run(ybio.psql().args(["-c", &call])).stderr
    };
    let error = refused(&ybio, "1001");
    assert!(error.contains("keys up to 1000, fewer than tab_rows (1001)"), "{error}");
    // A part of the table can be used.
    assert!(
        !ybio
            .notices("call runit(tab_rows=>500, batch_size=>10, run_duration=>interval '0')")
            .is_empty()
    );
    ybio.connection.execute("delete from bench0001 where mykey between 1 and 900").unwrap();
    let error = refused(&ybio, "1000, initial_count=>true");
    assert!(error.contains("has 100 rows with keys up to 1000"), "{error}");
    let notices =
        ybio.notices("call runit(tab_rows=>1000, batch_size=>1000, run_duration=>interval '0')");
    assert!(
        notices[0].contains("WARNING:  only 100 of 1000 rows have keys from 1 to 1000"),
        "{notices:?}"
    );
    // Found rows are counted, not expected ones.
    let run = ybio
        .value("select num_batches || ' ' || num_rows from benchruns order by job_id desc limit 1");
    assert_eq!(run, "1 100");
    assert_eq!(ybio.value("select count(*) from benchruns"), "2");
    ybio.connection.execute("truncate bench0001").unwrap();
    assert!(refused(&ybio, "10").contains("keys up to 0"));
}

#[test]
fn restores_the_session_and_reports_a_missing_index_or_table() {
    let Some(ybio) = Ybio::install("ybio_session") else {
        return;
    };
    let script = "call setup(tab_rows=>100, batch_size=>50);
        set enable_bitmapscan = off;
        call runit(tab_rows=>100, batch_size=>5, run_duration=>interval '0');
        select current_setting('enable_bitmapscan'), current_setting('enable_seqscan'), current_setting('plan_cache_mode'),
               (select count(*) from pg_prepared_statements), (select count(*) from pg_class where relnamespace = pg_my_temp_schema());
        drop index bench0001_asc_mykey;
        call runit(tab_rows=>100, batch_size=>5, run_duration=>interval '0');";
    let ran = CommandOutput::run(ybio.psql().args(["-c", "select 1"]).args(
        script.split(';').filter(|part| !part.trim().is_empty()).flat_map(|part| ["-c", part]),
    ))
    .expect(0);
    assert!(ran.stdout.contains("off|on|auto|0|0"), "{}", ran.stdout);
    // Without the index, the access path changes and the call prints a warning.
    ran.stderr_contains("access path of table \"bench0001\" is Seq Scan, expected Index Scan");
    let missing = CommandOutput::run(ybio.psql().args(["-c", "call runit(tab_num=>9)"])).expect(1);
    missing.stderr_contains("table \"bench0009\" does not exist: create it with call setup");
}

#[test]
fn a_retried_call_continues_from_its_last_report() {
    let Some(mut ybio) = Ybio::install("ybio_again") else {
        return;
    };
    ybio.notices("call setup(tab_rows=>100, batch_size=>50)");
    let now: f64 = ybio.value("select date_part('epoch', clock_timestamp())").parse().unwrap();
    let state = r#"{"call": "x", "all": {"batches": 70, "updates": 30, "read_rows": 400, "updated_rows": 300}, "lost_rows": 5, "announced": 340}"#;
    ybio.connection
        .query_with("select set_config('ybio.state', $1, false)", &[Some(state)])
        .unwrap();
    let call = |id: &str| {
        format!(
            "call ybio_loop('{id}', 'bench0001', 100, 10, 10, 100, true, true, false, {now}, {now}, {now}, null, null, null, 1, 10, false, null, null)"
        )
    };
    let counts = |report: &str| {
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        (
            report["all"]["updates"].clone(),
            report["all"]["updated_rows"].clone(),
            report["lost_rows"].clone(),
        )
    };
    // One more batch. Up to 40 rows of the first attempt and 5 rows of an earlier attempt are unknown.
    let again = ybio.value(&call("x"));
    assert_eq!(counts(&again), (31.into(), 310.into(), 45.into()));
    // Another call starts from zero.
    let other = ybio.value(&call("y"));
    assert_eq!(counts(&other), (1.into(), 10.into(), 0.into()));
}
