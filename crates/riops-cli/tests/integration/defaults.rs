//! Defaults of a role, a database or `PGOPTIONS`: they apply to the sessions that are measured, not to riops.

use riops::host::Interrupt;
use riops::server::{ConnInfo, Connection};

use crate::fixture::{CommandOutput, Database, database};

/// Settings that would end statements of riops, or change what it reads.
const DEFAULTS: [(&str, &str); 15] = [
    ("statement_timeout", "1h"),
    ("lock_timeout", "1h"),
    ("idle_in_transaction_session_timeout", "1h"),
    ("idle_session_timeout", "1h"),
    ("default_transaction_isolation", "serializable"),
    ("default_transaction_deferrable", "on"),
    ("row_security", "off"),
    ("\"DateStyle\"", "SQL, DMY"),
    ("\"IntervalStyle\"", "iso_8601"),
    ("\"TimeZone\"", "Asia/Kathmandu"),
    ("extra_float_digits", "-15"),
    ("bytea_output", "escape"),
    ("standard_conforming_strings", "off"),
    ("quote_all_identifiers", "on"),
    ("client_min_messages", "error"),
];

fn set(database: &Database, settings: &[(&str, &str)]) {
    let name = &database.conninfo.database;
    for (setting, value) in settings {
        let sql = format!("alter database {name} set {setting} = '{value}'");
        database.connect().execute(&sql).unwrap();
    }
}

#[test]
fn defaults_apply_to_measured_sessions_and_not_to_statements_of_riops() {
    let database = database("defaults_apply");
    set(&database, &DEFAULTS);
    set(&database, &[("statement_timeout", "90min")]);
    let info = ConnInfo::parse(&database.url, |_| None).unwrap();
    let interrupt = Interrupt::new();
    let values = |mut connection: Connection| {
        let value =
            |(name, _): &(&str, &str)| connection.query_value(&format!("show {name}")).unwrap();
        DEFAULTS.iter().map(value).map(Option::unwrap).collect::<Vec<_>>()
    };
    let own = values(Connection::open(&info, &interrupt).unwrap());
    let expected = [
        "0",
        "0",
        "0",
        "0",
        "read committed",
        "off",
        "off",
        "ISO, DMY",
        "postgres",
        "Asia/Kathmandu",
        "3",
        "hex",
        "on",
        "off",
        "notice",
    ];
    assert_eq!(own, expected);
    let measured = values(Connection::open_measured(&info, &interrupt).unwrap());
    let configured =
        DEFAULTS.map(|(name, value)| if name == "statement_timeout" { "90min" } else { value });
    assert_eq!(measured, configured);
    // The record and the diagnosis contain the settings of the measured sessions.
    let line = "run ping --transactions 10 --warmup 0 --no-store --output json";
    let record = database.riops(line).expect(0).json();
    let settings = &record["target"]["settings"];
    for (name, value) in
        [("statement_timeout", "90min"), ("lock_timeout", "1h"), ("extra_float_digits", "-15")]
    {
        assert_eq!(settings[name], value, "{name}");
    }
    assert_eq!(settings["default_transaction_isolation"], "serializable");
    let doctor = database.riops("doctor --output json").expect(0).json();
    assert_eq!(doctor["settings"]["statement_timeout"], "5400000 ms");
}

#[test]
fn defaults_neither_end_nor_change_statements_of_riops() {
    let database = database("defaults_riops");
    set(&database, &DEFAULTS);
    for line in ["prepare rows --rows 5000", "prepare oltp --tables 1 --table-size 1000"] {
        database.riops(line).expect(0);
    }
    for line in ["verify rows", "verify oltp", "warm rows", "doctor", "pgbench -i -q"] {
        database.riops(line).expect(0);
    }
    for line in [
        "run rows --batch 10 --update-percent 50",
        "run rows --batch 10 --loop server",
        "run oltp",
        "run script -b select-only",
        "run ping",
    ] {
        let line = format!("{line} -c 1 --duration 300ms --warmup 0 --no-store --output json");
        let record = database.riops(&line).expect(0).json();
        assert_eq!(record["verdict"]["valid"], true, "{line}: {}", record["verdict"]);
        assert!(record["stages"][0]["transactions"].as_u64() > Some(0), "{line}");
    }
    for line in ["cleanup rows", "cleanup oltp"] {
        database.riops(line).expect(0);
    }
}

const READ_ONLY: &str = "-c default_transaction_read_only=on";

#[test]
fn runs_that_only_read_need_no_registration_where_transactions_are_read_only() {
    let database = database("defaults_read_only");
    database.riops("pgbench -i -q").expect(0);
    database.connect().execute("drop schema if exists riops cascade").unwrap();
    crate::ownership::create_sysbench_table(&database, 1000);
    let riops = |line: &str| CommandOutput::run(database.command(line).env("PGOPTIONS", READ_ONLY));
    let work = "-c 2 --transactions 20 --warmup 0 --no-store --output json";
    let notice = "the tables are used without being registered";
    let read_all = || {
        for line in ["run script -b select-only", "run oltp --test point-select --schema public"] {
            let ran = riops(&format!("{line} {work}")).expect(0).stderr_contains(notice);
            assert_eq!(ran.json()["verdict"]["valid"], true);
        }
        riops(&format!("pgbench -n -S -t 20 {}", database.url)).expect(0);
    };
    read_all();
    assert_eq!(database.value("select to_regnamespace('riops')"), None);
    // The tables are read in the same way after another run has registered them.
    database.riops(&format!("run script -b select-only {work}")).expect(0);
    database.riops(&format!("run oltp --test point-select --schema public {work}")).expect(0);
    let registered = || database.value("select string_agg(id, ' ' order by id) from riops.dataset");
    let before = registered();
    assert!(before.is_some());
    read_all();
    assert_eq!(registered(), before);
    // Where riops must write, the error names the setting.
    for line in
        ["prepare rows --rows 100", "run script -b simple-update --transactions 5", "pgbench -i"]
    {
        riops(line).expect(1).stderr_contains("hint: default_transaction_read_only is on");
    }
}
