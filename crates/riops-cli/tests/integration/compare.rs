//! `riops run --repeat`, `riops compare` and `riops runs history`.

use riops::host::Interrupt;
use riops::store::StoreLocation;
use serde_json::Value;

use crate::fixture::{CommandOutput, database, start_until};

const PING: &str = "run ping -c 1 --warmup 0 --duration 300ms --interval 100ms";

#[test]
fn repeated_runs_have_a_common_tag_and_a_summary() {
    let database = database("repeated");
    let run = database.riops(&format!("{PING} --repeat 3 --settle 10ms --label short")).expect(0);
    for position in 1..=3 {
        assert!(run.stdout.contains(&format!("run {position} of 3  ")), "{}", run.stdout);
    }
    assert!(run.stdout.contains("3 valid runs of 3"), "{}", run.stdout);
    assert!(run.stdout.contains("median") && run.stdout.contains("95% interval"), "{}", run.stdout);
    let listed = database.riops("runs list --output json").expect(0).json();
    let tags: Vec<_> =
        listed.as_array().unwrap().iter().map(|run| &run["tags"]["repeat"]).collect();
    assert_eq!(tags.len(), 3);
    assert!(tags[0].is_string() && tags.iter().all(|tag| *tag == tags[0]), "{tags:?}");
    assert!(
        run.stdout.contains(&format!("repeat={}", tags[0].as_str().unwrap())),
        "{}",
        run.stdout
    );
}

#[test]
fn a_breached_threshold_of_repeated_runs_is_shown_and_listed() {
    let database = database("repeated_breach");
    let line = format!("{PING} --repeat 2 --settle 10ms --threshold tps>1000000000");
    let run = database.riops(&line).expect(99);
    let breaches = run.stdout.matches(" BREACHED: tps>1000000000 (measured ").count();
    assert_eq!(breaches, 2, "{}", run.stdout);
    let json = database.riops(&format!("{line} --output json")).expect(99);
    json.stderr_contains(" BREACHED: tps>1000000000 (measured ");
    let listed = database.riops("runs list").expect(0).stdout;
    assert!(listed.contains("breached"), "{listed}");
}

#[test]
fn an_interrupt_between_repeated_runs_keeps_the_ended_runs() {
    let database = database("repeat_interrupted");
    let line = format!("{PING} --repeat 5 --settle 1h");
    let child = start_until(&mut database.command(&line), "pause");
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = CommandOutput::from(child.wait_with_output().unwrap()).expect(130);
    assert!(ended.stdout.contains("1 valid run of 1"), "{}", ended.stdout);
    assert_eq!(
        database.riops("runs list --output json").expect(0).json().as_array().unwrap().len(),
        1
    );
}

#[test]
fn two_single_runs_are_shown_side_by_side_without_a_verdict() {
    let database = database("compared_single");
    for label in ["one", "two"] {
        database.riops(&format!("{PING} --label {label}")).expect(0);
    }
    let text = database.riops("compare one two").expect(0).stdout;
    assert!(text.contains("one run per side is not enough for a verdict"), "{text}");
    assert!(text.contains("transactions/s") && !text.contains("FASTER"), "{text}");
    let json = database.riops("compare one two --output json").expect(0).json();
    assert_eq!(json["stages"][0]["figures"][0]["effect"], Value::Null);
    let markdown = database.riops("compare one two --output markdown").expect(0).stdout;
    assert!(markdown.contains("| figure | A | B |"), "{markdown}");
    // The setting is "on" also without the library.
    let target = &database.riops("runs show last --output json").expect(0).json()["target"];
    let is_available = database.value("select pg_jit_available()").as_deref() == Some("t");
    let jit = if is_available { "on" } else { "on (not available)" };
    assert_eq!(target["settings"]["jit"], jit);
    assert_eq!(target["setting_defaults"]["fsync"], "on");
}

#[test]
fn settings_of_the_sessions_are_recorded_whatever_sets_them() {
    let database = database("compared_settings");
    let mut connection = database.connect();
    connection.execute("create role configured login superuser").unwrap();
    connection.execute("alter role configured set statement_timeout = '7s'").unwrap();
    connection.execute("alter database compared_settings set enable_seqscan = off").unwrap();
    let (_, place) = database.url.split_once('@').unwrap();
    let other = format!("postgresql://configured@{place}");
    for (label, url, options) in [
        ("plain", &database.url, ""),
        (
            "other",
            &other,
            "-c random_page_cost=1.1 -c work_mem=7MB -c search_path=nowhere -c role=postgres",
        ),
        ("default", &database.url, "-c random_page_cost=4"),
    ] {
        let mut command = database.command(&format!("{PING} --label {label}"));
        command.env("RIOPS_DATABASE", url).env("PGOPTIONS", options);
        CommandOutput::run(&mut command).expect(0);
    }
    let json = database.riops("compare plain other --output json").expect(0).json();
    let changes = json["changes"].as_array().unwrap().iter();
    let settings = changes.filter(|change| change["topic"] == "setting");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let recorded: Vec<_> =
        settings.map(|change| [&change["name"], &change["a"], &change["b"]].map(text)).collect();
    let expected = [
        ["random_page_cost", "4 (default)", "1.1"],
        ["role", "default", "postgres"],
        ["search_path", "\"$user\", public (default)", "nowhere"],
        ["session_authorization", "default", "configured"],
        ["statement_timeout", "default", "7s"],
        ["work_mem", "4MB", "7MB"],
    ];
    assert_eq!(recorded, expected.map(|setting| setting.map(str::to_owned)));
    // The default is not a difference, whatever sets it; and what is set for both is recorded.
    let json = database.riops("compare plain default --output json").expect(0).json();
    let is_setting = |change: &&Value| change["topic"] == "setting";
    assert_eq!(json["changes"].as_array().unwrap().iter().find(is_setting), None);
    let target = &database.riops("runs show last --output json").expect(0).json()["target"];
    assert_eq!(target["settings"]["enable_seqscan"], "off");
    assert_eq!(target["settings"]["application_name"], Value::Null);
}

#[test]
fn more_work_per_transaction_is_slower_and_the_change_is_named() {
    let database = database("compared_groups");
    database.riops("prepare rows --rows 2000").expect(0);
    let run = |batch: u32, label: &str, block: u32| {
        let line = format!(
            "run rows -c 1 --batch {batch} --transactions 300 --warmup 0 --interval 100ms --label {label} --tag block={block}"
        );
        database.riops(&line).expect(0);
    };
    for block in 0..6 {
        run(1, "small", block);
        run(1000, "large", block);
    }
    let compared = database.riops("compare small large --effect 2%").expect(0);
    let text = compared.stdout;
    assert!(text.contains("rows.batch") && text.contains("1 → 1000"), "{text}");
    assert!(text.contains("B is FASTER: rows/s ×"), "{text}");
    let reversed = database.riops("compare large small --fail-on slower").expect(99).stdout;
    assert!(reversed.contains("B is SLOWER: rows/s -9"), "{reversed}");
    // Four of the blocks decide, too; two runs do not, which has a separate exit code.
    for block in 0..4 {
        for label in ["small", "large"] {
            let line = format!("runs list --label {label} --tag block={block} --output json");
            let id = database.riops(&line).expect(0).json()[0]["id"].as_str().unwrap().to_owned();
            database.riops(&format!("runs tag {id} four={label}")).expect(0);
        }
    }
    let four = database.riops("compare four=large four=small --fail-on slower").expect(99).stdout;
    assert!(four.contains("4 rounds are too few for a comparison within them"), "{four}");
    database.riops("compare block=0 block=1 --fail-on inconclusive").expect(99);
    let open = database.riops("compare block=0 block=1 --fail-on slower").expect(0);
    open.stderr_contains("--fail-on slower,inconclusive");
    database.riops("compare small large --effect 2 ").expect(2).stderr_contains("percentage");
    database.riops("compare small small").expect(2).stderr_contains("in both groups");
    database.riops("compare small nothing").expect(1).stderr_contains("nothing");
}

#[test]
fn a_history_lists_the_runs_of_a_label_and_names_a_change() {
    let database = database("history");
    database.riops(&format!("{PING} --label nightly")).expect(0);
    let location = StoreLocation::File(database.store.clone());
    let store = riops::store::open(&location, &Interrupt::new()).unwrap();
    let first = store.find("last").unwrap();
    store.remove("last").unwrap();
    for day in 0..20_u32 {
        let mut record = first.clone();
        record.id = uuid::Uuid::now_v7();
        record.started_at += jiff::SignedDuration::from_hours(i64::from(day) * 24);
        // 1 % of noise, and 10 % less from the 13th run on.
        let level = if day < 12 { 1000.0 } else { 900.0 };
        let noise = f64::from(day * 7 % 5) / 200.0;
        record.stages[0].throughput.transactions_per_s = level * (1.0 + noise);
        store.save(&record).unwrap();
    }
    let history = database.riops("runs history --label nightly --fail-on slower").expect(99).stdout;
    assert!(history.contains("SLOWER -9.") || history.contains("SLOWER -10."), "{history}");
    assert_eq!(history.matches("ping, select1, 1 session").count(), 1, "{history}");
    let json = database.riops("runs history --label nightly --output json").expect(0).json();
    assert_eq!(json[0]["points"].as_array().unwrap().len(), 20);
    assert_eq!(
        (&json[0]["changes"][0]["index"], &json[0]["changes"][1]),
        (&12.into(), &Value::Null)
    );
    // p50 did not change.
    database.riops("runs history --label nightly --figure p50 --fail-on change").expect(0);
    database.riops("runs history --invalid").expect(2).stderr_contains("--invalid");
    database.riops("run ping --settle 1s").expect(2).stderr_contains("--repeat");
    database.riops("runs history --label weekly").expect(2).stderr_contains("no valid run matches");
}

#[test]
fn names_the_changes_of_the_tables_of_a_script() {
    let database = database("schema_changes");
    let execute = |sql: &str| database.connect().execute(sql).unwrap();
    execute(
        "create table kind (id int primary key); insert into kind select generate_series(0, 9);
         create table item (id int primary key, n int, kind int); insert into item select n, n, n % 10 from generate_series(1, 100) n;
         create table idle (id int)",
    );
    let file = database.store.with_extension("sql");
    std::fs::write(&file, "\\set id random(1, 100)\nupdate item set n = n + 1 where id = :id;\n")
        .unwrap();
    let run = |label: &str| {
        let line = "run script --transactions 50 -c 1 --warmup 0 --seed 1";
        let line = format!("{line} -f {} --label {label}", file.display());
        database.riops(&line).expect(0);
    };
    run("before");
    execute(
        "create index item_n on item (n);
         alter table item add column note text default 'x', alter n type bigint,
               add constraint item_kind foreign key (kind) references kind, add check (id > 0),
               set (fillfactor = 70, autovacuum_enabled = off);
         create function touch() returns trigger language plpgsql as 'begin return new; end';
         create trigger touched before update on item for each row execute function touch();
         create index idle_id on idle (id)",
    );
    run("after");
    let compared = database.riops("compare before after --output json").expect(0).json();
    let changes = compared["changes"].as_array().unwrap().iter();
    let schema = changes.filter(|change| change["topic"] == "schema").map(|change| {
        let text = |key: &str| change[key].as_str().unwrap().to_owned();
        format!("{}: {} -> {}", text("name"), text("a"), text("b"))
    });
    let mut schema: Vec<String> = schema.collect();
    for line in &mut schema {
        // The digest of the function.
        if let Some((start, _)) = line.split_once("touch() (") {
            *line = format!("{start}touch() (…)");
        }
    }
    insta::assert_snapshot!(schema.join("\n"), @r"
    public.item: column n: integer -> bigint
    public.item: column note: none -> text
    public.item: constraint item_id_check: none -> CHECK ((id > 0))
    public.item: constraint item_kind: none -> FOREIGN KEY (kind) REFERENCES public.kind(id)
    public.item: index item_n: none -> btree (n)
    public.item: option autovacuum_enabled: none -> off
    public.item: option fillfactor: none -> 70
    public.item: trigger touched: none -> BEFORE UPDATE ON public.item FOR EACH ROW EXECUTE FUNCTION public.touch() (…)
    ");
    let record = database.riops("runs show last --output json").expect(0).json();
    let tables = record["stages"][0]["database"]["relations"].as_array().unwrap();
    let item = tables.iter().find(|table| table["name"] == "public.item").unwrap();
    let activity = |key: &str| item["activity"][key].as_u64().unwrap();
    assert!(activity("updated") >= 50 && activity("index_scans") >= 50, "{item}");
    assert!(activity("hot_updated") < activity("updated") && activity("inserted") == 0, "{item}");
    let indexes = item["indexes"].as_array().unwrap().iter();
    let indexes: Vec<_> =
        indexes.map(|index| (index["name"].as_str(), index["scans"] == 0)).collect();
    assert_eq!(indexes, [(Some("item_n"), true), (Some("item_pkey"), false)]);
    let shown = database.riops("runs show last").expect(0);
    drop(shown.stdout_contains("tables       public.item: ").stdout_contains("index item_n"));
    // The same table again has no difference.
    run("again");
    let same = database.riops("compare after again").expect(0);
    assert!(!same.stdout.contains("schema"), "{}", same.stdout);
}
