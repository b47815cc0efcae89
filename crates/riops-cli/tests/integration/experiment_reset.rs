//! What happens before the runs of an experiment: databases, datasets and rules.

use std::cell::RefCell;

use riops::experiment::{
    Environment, ResetError, choose_database, drop_copy, drop_own_database, prepare_again,
    prepare_run, prepare_template, restore, server_differences,
};
use riops::host::Interrupt;
use riops::plan::{Plan, PreparePolicy};
use riops::record::Events;
use riops::run::CleanStartError;
use riops::server::Server;
use riops::study::{Between, DatabaseChoice};

use crate::crash::kill;
use crate::fixture::{Database, database, open, start_until};

fn server(database: &Database) -> Server {
    Server::external(database.conninfo.clone())
}

fn value(server: &Server, sql: &str) -> String {
    let mut connection = open(&server.conninfo);
    connection.query_value(sql).unwrap().unwrap_or_default()
}

fn id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// The databases of an experiment.
fn copies(database: &Database, experiment: &str) -> Vec<String> {
    let hex = experiment.replace('-', "");
    let sql = format!(
        "select datname from pg_database where datname in ('riops_{hex}_new', 'riops_{}_run')",
        &hex[hex.len() - 8..]
    );
    database.connect().query(&sql).unwrap().into_iter().flatten().flatten().collect()
}

const SUM: &str = "select count(*) || ' ' || sum(hashtext(t::text)::bigint) from riops.rows_0001 t";

#[test]
fn every_run_starts_from_identical_data_and_nothing_is_left() {
    let database = database("reset_restore");
    database.riops("prepare rows --rows 1000").expect(0);
    database.connect().execute("alter database reset_restore set work_mem to '12345kB'").unwrap();
    let (given, experiment) = (server(&database), id());
    let before = value(&given, SUM);
    for _ in 0..2 {
        let copy = restore(&given, &experiment, &Interrupt::new()).unwrap();
        assert_eq!(copies(&database, &experiment), [copy.conninfo.database.as_str()]);
        assert_eq!(value(&copy, SUM), before);
        assert_eq!(value(&copy, "show work_mem"), "12345kB");
        let mut changing = open(&copy.conninfo);
        changing.execute("delete from riops.rows_0001 where mykey % 2 = 0").unwrap();
        // A session of a killed process may still be connected to the copy.
        std::mem::forget(changing);
        assert_ne!(value(&copy, SUM), before);
    }
    assert_eq!(value(&given, SUM), before);
    assert!(drop_copy(&given, &experiment).unwrap());
    assert!(!drop_copy(&given, &experiment).unwrap());
    assert_eq!(copies(&database, &experiment), [""; 0]);
}

#[test]
fn the_copy_of_a_killed_process_is_replaced() {
    let database = database("reset_killed");
    let (given, experiment) = (server(&database), id());
    // Killed before the comment, and after the copy was complete.
    let hex = experiment.replace('-', "");
    restore(&given, &experiment, &Interrupt::new()).unwrap();
    database.connect().execute(&format!("create database riops_{hex}_new")).unwrap();
    assert_eq!(copies(&database, &experiment).len(), 2);
    database.connect().execute("create table marker ()").unwrap();
    let copy = restore(&given, &experiment, &Interrupt::new()).unwrap();
    assert_eq!(copies(&database, &experiment).len(), 1);
    assert_eq!(value(&copy, "select to_regclass('marker')"), "marker");
    database.connect().execute(&format!("create database riops_{hex}_new")).unwrap();
    assert!(drop_copy(&given, &experiment).unwrap());
    assert_eq!(copies(&database, &experiment), [""; 0]);
}

#[test]
fn a_database_that_the_experiment_did_not_create_is_kept() {
    let database = database("reset_foreign");
    let (given, experiment) = (server(&database), id());
    let name = format!("riops_{}_run", &experiment[experiment.len() - 8..]);
    database.connect().execute(&format!("create database {name}")).unwrap();
    for comment in ["", "created by riops for experiment 0189"] {
        let sql = format!("comment on database {name} is '{comment}'");
        database.connect().execute(&sql).unwrap();
        let refused = restore(&given, &experiment, &Interrupt::new()).unwrap_err();
        assert!(matches!(&refused, ResetError::Foreign(foreign) if *foreign == name), "{refused}");
        assert!(matches!(drop_copy(&given, &experiment), Err(ResetError::Foreign(_))));
    }
    assert_eq!(copies(&database, &experiment), [name.as_str()]);
    database.connect().execute(&format!("drop database {name}")).unwrap();
}

#[test]
fn other_sessions_in_the_database_are_named() {
    let database = database("reset_in_use");
    let mut other = database.connect();
    other.execute("set application_name to 'their shell'").unwrap();
    let experiment = id();
    let refused = restore(&server(&database), &experiment, &Interrupt::new()).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("their shell") && text.contains("\"reset_in_use\""), "{text}");
    assert_eq!(copies(&database, &experiment), [""; 0]);
}

#[test]
fn a_role_without_the_privilege_to_copy_gets_a_hint() {
    let database = database("reset_rights");
    database.connect().execute("create role copier login").unwrap();
    let mut limited = server(&database);
    "copier".clone_into(&mut limited.conninfo.user);
    let refused = restore(&limited, &id(), &Interrupt::new()).unwrap_err();
    assert!(refused.to_string().contains("CREATEDB"), "{refused}");
}

#[test]
fn an_own_database_is_created_once_and_dropped_only_if_riops_created_it() {
    let database = database("reset_own");
    let embedded = Server { embedded: true, ..server(&database) };
    let choose = |server: &Server, name: &str| {
        let choice = DatabaseChoice::Own(name.to_owned());
        choose_database(server, &choice, &Interrupt::new()).unwrap()
    };
    let own = choose(&embedded, "reset \"own\" 1");
    let extension = "select extname from pg_extension where extname = 'pg_stat_statements'";
    assert_eq!(value(&own, extension), "pg_stat_statements");
    let mut connection = open(&own.conninfo);
    connection.execute("create table kept ()").unwrap();
    drop(connection);
    let collation = "select datcollate from pg_database where datname = current_database()";
    assert_eq!(value(&own, collation), value(&embedded, collation));
    let again = choose(&embedded, "reset \"own\" 1");
    assert_eq!(value(&again, "select to_regclass('kept')"), "kept");
    assert!(drop_own_database(&embedded, "reset \"own\" 1").unwrap());
    assert!(!drop_own_database(&embedded, "reset \"own\" 1").unwrap());
    // The database of the user.
    choose(&embedded, "reset_own");
    assert!(!drop_own_database(&embedded, "reset_own").unwrap());
    assert_eq!(value(&embedded, "select 1"), "1");
    // Another server.
    assert_eq!(choose(&server(&database), "elsewhere").conninfo.database, "reset_own");
    let given = choose_database(&embedded, &DatabaseChoice::Given, &Interrupt::new()).unwrap();
    assert_eq!(given.conninfo.database, "reset_own");
}

#[test]
fn a_dataset_is_prepared_anew_with_its_own_parameters() {
    let database = database("reset_prepare");
    database.riops("prepare rows --rows 700 --seed 7").expect(0);
    let (given, plan) = (server(&database), Plan::default());
    let dataset = "select id from riops.dataset where workload = 'rows'";
    let (before, id_before) = (value(&given, SUM), value(&given, dataset));
    database.connect().execute("delete from riops.rows_0001").unwrap();
    prepare_again(&given, &plan, &Interrupt::new(), &Events::ignored()).unwrap();
    assert_eq!(value(&given, SUM), before);
    let id_now = value(&given, dataset);
    assert_ne!(id_now, id_before);
    // A complete dataset is not prepared again for the copies.
    let may = Plan { prepare: PreparePolicy::IfMissing, ..Plan::default() };
    prepare_template(&given, &may, &Interrupt::new(), &Events::ignored()).unwrap();
    assert_eq!(value(&given, dataset), id_now);
    database.riops("cleanup rows").expect(0);
    prepare_template(&given, &plan, &Interrupt::new(), &Events::ignored()).unwrap();
    assert_eq!(value(&given, "select to_regclass('riops.dataset')"), "");
    prepare_template(&given, &may, &Interrupt::new(), &Events::ignored()).unwrap();
    assert_eq!(value(&given, "select to_regclass('riops.rows_0001')"), "riops.rows_0001");
}

const RULES: Between = Between {
    checkpoint: true,
    vacuum: true,
    idle_device_s: Some(0.0),
    cool_down_s: 0.0,
    before: None,
    after: None,
};

#[test]
fn tables_are_vacuumed_and_a_checkpoint_is_written_before_a_run() {
    let database = database("rules");
    let given = server(&database);
    let told = RefCell::new(Vec::new());
    let notify = |text: &str| told.borrow_mut().push(text.to_owned());
    let prepare = |server: &Server| {
        prepare_run(server, &RULES, &Plan::default(), true, &Interrupt::new(), &notify)
    };
    // The dataset does not exist yet.
    prepare(&given).unwrap();
    database.riops("prepare rows --rows 1000").expect(0);
    let checkpoint = "select checkpoint_lsn from pg_control_checkpoint()";
    let (vacuums, before) = (
        "select sum(vacuum_count) from pg_stat_user_tables where schemaname = 'riops'",
        value(&given, checkpoint),
    );
    let count = || value(&given, vacuums).parse::<u64>().unwrap();
    let vacuumed = count();
    prepare(&given).unwrap();
    assert!(count() > vacuumed);
    assert_ne!(value(&given, checkpoint), before);
    assert_eq!(*told.borrow(), [""; 0]);
}

#[test]
fn a_role_without_privileges_gets_the_grant_and_observes_the_statistics_of_the_server() {
    let database = database("rules_rights");
    database.riops("prepare rows --rows 1000").expect(0);
    let mut admin = database.connect();
    admin.execute("create role runner login").unwrap();
    admin.execute("grant usage on schema riops to runner").unwrap();
    admin.execute("grant select on all tables in schema riops to runner").unwrap();
    let mut limited = server(&database);
    "runner".clone_into(&mut limited.conninfo.user);
    let told = RefCell::new(Vec::new());
    let notify = |text: &str| told.borrow_mut().push(text.to_owned());
    let prepare = |rules: &Between| {
        prepare_run(&limited, rules, &Plan::default(), true, &Interrupt::new(), &notify)
    };
    let refused = prepare(&RULES).unwrap_err();
    assert!(matches!(refused, CleanStartError::Checkpoint { .. }), "{refused}");
    assert!(refused.to_string().contains("GRANT pg_checkpoint TO \"runner\""), "{refused}");
    // The server only warns about tables that a role may not vacuum.
    assert!(told.borrow()[0].contains("permission denied to vacuum"), "{told:?}");
    told.borrow_mut().clear();
    let idle = Between { idle_device_s: Some(0.0), ..Between::default() };
    prepare(&idle).unwrap();
    assert_eq!(*told.borrow(), [""; 0], "without the data directory, pg_stat_io is observed");
    let interrupt = Interrupt::new();
    interrupt.request();
    let rules = Between { cool_down_s: 86_400.0, ..Between::default() };
    let ended = prepare_run(&limited, &rules, &Plan::default(), false, &interrupt, &notify);
    assert!(ended.unwrap_err().is_interrupted());
}

#[test]
fn the_environment_of_a_server_is_the_same_on_every_connection() {
    let (one, two) = (database("environment_one"), database("environment_two"));
    let read = |database: &Database| {
        let embedded = Server { embedded: true, ..server(database) };
        Environment::read(&embedded, &Interrupt::new()).unwrap()
    };
    let before = read(&one);
    let now = Environment { database: before.database.clone(), ..read(&two) };
    assert_eq!(server_differences(&before, &now), [""; 0]);
    assert!(before.cpus > 0 && before.settings.contains_key("shared_buffers"), "{before:?}");
    one.connect().execute("alter database environment_one set work_mem to '12MB'").unwrap();
    let changed = server_differences(&now, &read(&one));
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert!(changed[0].ends_with("then, 12MB now"), "{changed:?}");
}

#[test]
fn an_experiment_killed_before_its_first_run_ended_is_resumed_and_leaves_no_copy() {
    let database = database("killed_first_run");
    database.riops("prepare rows --rows 1000").expect(0);
    let line =
        "sweep rows --axis batch=1,10 --repeat 1 --transactions 20 --warmup 0 -c 1 --reset restore";
    let mut child = start_until(&mut database.command(line), "run 1 of 2");
    kill(child.id(), "-KILL");
    child.wait().unwrap();
    database.riops("sweep --resume").expect(0);
    let listed = database.riops("sweep --list --output json").expect(0).json();
    assert_eq!(listed[0]["runs"], 2, "{listed}");
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(copies(&database, id), [""; 0]);
}

#[test]
fn settings_whose_names_need_quotes_are_copied() {
    let database = database("reset_names");
    database.riops("prepare rows --rows 2000").expect(0);
    let mut connection = database.connect();
    for name in ["\"user.x\"", "\"select.from\"", "work_mem", "plpgsql.extra_warnings"] {
        let value = if name == "work_mem" { "5MB" } else { "none" };
        connection.execute(&format!("alter database reset_names set {name} = '{value}'")).unwrap();
    }
    drop(connection);
    let line =
        "sweep rows --axis batch=10,20 --repeat 1 --reset restore --duration 200ms --warmup 0";
    database.riops(line).expect(0);
}
