//! Storing is interrupted: by SIGKILL, by a full disk, by a lost connection. At most one run is lost, and never the
//! store.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use riops::host::Interrupt;
use riops::record::Record;
use riops::server::ConnInfo;
use riops::store::{self, RunFilter, Store, StoreError, StoreLocation};
use riops_testkit::{Fault, Proxy};

use crate::fixture::{CommandOutput, Database, binary, command, database, folder, spin};
use crate::stores::{Place, record};

/// The variable that tells the child process where it stores runs.
const STORE: &str = "STORE_UNDER_TEST";
/// Moments at which a child process is killed, per backend.
const KILLS: u32 = 100;

/// Returns a record with many rows in the tables, so that storing it takes a while.
fn long_record() -> Record {
    let mut record = record(1);
    record.id = uuid::Uuid::now_v7();
    record.stages.truncate(1);
    let series = &mut record.stages[0].session_loop.series;
    let point = series[0].clone();
    series.resize(300, point);
    record
}

/// Not a test: the body of the child process, which stores runs until it is killed, and prints the id of each.
#[test]
#[ignore = "started by the tests below"]
fn child_that_stores_runs() {
    let Ok(place) = std::env::var(STORE) else { return };
    let location = StoreLocation::parse(&place, |_| None).unwrap();
    let store = store::open(&location, &Interrupt::new()).unwrap();
    loop {
        let record = long_record();
        store.save(&record).unwrap();
        let line = format!("\n{}\n", record.id);
        std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).unwrap();
    }
}

/// Kills children that store runs, each at another moment. Checks after each that all acknowledged runs are stored,
/// and at the end that each run is stored completely or not at all.
fn kill_at_random_moments(place: &Place) {
    let store = place.open();
    let mut acknowledged = BTreeSet::new();
    let mut random = 1_u64;
    for _ in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["storing::child_that_stores_runs", "--exact", "--ignored", "--nocapture"])
            .env(STORE, place.location().to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut ids =
            lines.map_while(Result::ok).filter_map(|line| line.parse::<uuid::Uuid>().ok());
        acknowledged.extend(ids.next().map(|id| id.to_string()));
        // Some time within the next run or two.
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        spin((random >> 33) % 200_000);
        child.kill().unwrap();
        acknowledged.extend(ids.map(|id| id.to_string()));
        child.wait().unwrap();
        let listed = store.list(&RunFilter::default()).unwrap();
        let listed: BTreeSet<_> = listed.into_iter().map(|run| run.id).collect();
        assert!(acknowledged.is_subset(&listed), "a stored run was lost");
    }
    let listed = store.list(&RunFilter::default()).unwrap();
    assert!(listed.len() <= acknowledged.len() + KILLS as usize);
    for run in &listed {
        assert_eq!(store.find(&run.id).unwrap().stages[0].session_loop.series.len(), 300);
    }
    let count =
        |table: &str| place.sql(&format!("select count(*) from {table}"))[0].clone().unwrap();
    assert_eq!(count("records"), listed.len().to_string());
    assert_eq!(count("series"), (300 * listed.len()).to_string());
    assert_eq!(count("stages"), listed.len().to_string());
}

#[test]
fn sigkill_while_storing_in_a_file_loses_at_most_that_run() {
    let place = Place::file("killed");
    kill_at_random_moments(&place);
    assert_eq!(place.sql("pragma integrity_check"), [Some("ok".to_owned())]);
}

#[test]
fn sigkill_while_storing_in_a_database_loses_at_most_that_run() {
    kill_at_random_moments(&Place::database("killed"));
}

/// Returns the location of the database through the proxy.
fn location_through(proxy: &Proxy, database: &Database) -> StoreLocation {
    let ConnInfo { user, database, .. } = &database.conninfo;
    StoreLocation::Postgresql(Box::new(ConnInfo::unix(
        proxy.folder(),
        riops_testkit::PORT,
        user,
        database,
    )))
}

fn socket(database: &Database) -> std::path::PathBuf {
    database.conninfo.servers[0].socket_path().unwrap()
}

fn proxy(database: &Database, fault: impl Fn(u64) -> Fault + Send + 'static) -> Proxy {
    Proxy::start_for(&socket(database), fault).unwrap()
}

/// Returns how many bytes opening the store and storing this record send to the server, and receive.
fn bytes_of(database: &Database, record: &Record) -> ((u64, u64), (u64, u64)) {
    let proxy = proxy(database, |_| Fault::None);
    let store = store::open(&location_through(&proxy, database), &Interrupt::new()).unwrap();
    let opened = proxy.forwarded();
    store.save(record).unwrap();
    store.remove(&record.id.to_string()).unwrap();
    (opened, proxy.forwarded())
}

#[test]
fn a_store_whose_connection_breaks_once_stores_the_run_on_a_new_connection() {
    let database = database("broken_once");
    let record = record(1);
    let direct = StoreLocation::Postgresql(Box::new(database.conninfo.clone()));
    let direct = store::open(&direct, &Interrupt::new()).unwrap();
    let (opened, closed) = bytes_of(&database, &record);
    let step = |from: u64, to: u64| usize::try_from((to - from) / 40).unwrap().max(1);
    let to_server = (opened.0 + 1..closed.0).step_by(step(opened.0, closed.0));
    let to_client = (opened.1 + 1..closed.1).step_by(step(opened.1, closed.1));
    let faults = to_server.map(Fault::CutToServer).chain(to_client.map(Fault::CutToClient));
    for fault in faults {
        let proxy =
            proxy(&database, move |connection| if connection == 0 { fault } else { Fault::None });
        let store = store::open(&location_through(&proxy, &database), &Interrupt::new()).unwrap();
        store.save(&record).unwrap_or_else(|error| panic!("{fault:?}: {error}"));
        assert_eq!(direct.find("last").unwrap(), record, "{fault:?}");
        direct.remove("last").unwrap();
    }
}

#[test]
fn a_store_that_is_lost_reports_it_and_has_the_run_completely_or_not_at_all() {
    let database = database("storing_lost");
    let record = record(1);
    let direct = StoreLocation::Postgresql(Box::new(database.conninfo.clone()));
    let direct = store::open(&direct, &Interrupt::new()).unwrap();
    let (opened, closed) = bytes_of(&database, &record);
    for bytes in (opened.0 + 1..closed.0).step_by(997) {
        let proxy = proxy(&database, move |connection| {
            Fault::CutToServer(if connection == 0 { bytes } else { 0 })
        });
        let store = store::open(&location_through(&proxy, &database), &Interrupt::new()).unwrap();
        let saved = store.save(&record);
        drop((store, proxy));
        match (saved, direct.find("last")) {
            (Ok(()), Ok(stored)) => {
                assert_eq!(stored, record);
                direct.remove("last").unwrap();
            }
            (Err(StoreError::Postgresql { .. }), Err(StoreError::Empty(_))) => {}
            (Err(_), Ok(stored)) => {
                // The reply to the commit was lost.
                assert_eq!(stored, record);
                direct.remove("last").unwrap();
            }
            (saved, stored) => panic!("{bytes}: {saved:?}, {stored:?}"),
        }
    }
}

#[test]
fn an_interruption_ends_the_wait_for_a_locked_store() {
    let database = database("storing_locked");
    let interrupt = Interrupt::new();
    let location = StoreLocation::Postgresql(Box::new(database.conninfo.clone()));
    let store = store::open(&location, &interrupt).unwrap();
    let mut other = database.connect();
    other.execute("begin; lock table riops_store.runs in access exclusive mode").unwrap();
    let saving = std::thread::spawn(move || (store.save(&record(1)), store));
    let waits = "select 1 from pg_stat_activity where application_name = 'riops store' and wait_event_type = 'Lock'";
    while database.value(waits).is_none() {
        std::thread::yield_now();
    }
    interrupt.request();
    let (saved, _store) = saving.join().unwrap();
    let error = saved.unwrap_err().to_string();
    assert!(error.ends_with(": interrupted"), "{error}");
    // The lock is still held.
    other.execute("rollback").unwrap();
    assert_eq!(database.value("select count(*) from riops_store.runs").as_deref(), Some("0"));
}

/// Checks that a command kept its record as a file, and said where. Returns the record.
fn kept_record(run: &CommandOutput, folder: &Path) -> Record {
    let files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let is_record = |path: &&std::path::PathBuf| path.extension().is_some_and(|end| end == "json");
    let file = files.iter().find(is_record).unwrap_or_else(|| panic!("{}", run.stderr));
    let shown = file.display().to_string();
    assert!(run.stderr.contains("cannot store the run"), "{}", run.stderr);
    assert!(run.stderr.contains(&format!("the record is in {shown}")), "{}", run.stderr);
    assert!(run.stderr.contains(&format!("`riops runs import {shown}")), "{}", run.stderr);
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn a_lost_connection_to_the_store_keeps_the_record_as_a_file() {
    let database = database("lost_store");
    let store = database.riops("run ping --duration 100ms --warmup 0 --interval 100ms").expect(0);
    assert!(store.stdout.contains("stored"));
    // Learn how many bytes a run sends to the store.
    let line = "run ping --duration 100ms --warmup 0 --interval 100ms";
    let run_in = |proxy: &Proxy, folder: &Path| {
        let mut run = database.command(line);
        run.current_dir(folder).env("RIOPS_STORE", location_through(proxy, &database).to_string());
        CommandOutput::run(&mut run)
    };
    let folder = folder("lost-store-files");
    let through_all = proxy(&database, |_| Fault::None);
    run_in(&through_all, &folder).expect(0);
    let second = proxy(&database, |_| Fault::None);
    run_in(&second, &folder).expect(0);
    // In the middle of the record, whose length varies with what disturbed the run.
    let cut = second.forwarded().0 - 8_000;
    drop((through_all, second));
    let broken = proxy(&database, move |connection| {
        Fault::CutToServer(if connection == 0 { cut } else { 0 })
    });
    let run = run_in(&broken, &folder).expect(1);
    assert!(run.stdout.contains("stored       NO:"), "{}", run.stdout);
    let record = kept_record(&run, &folder);
    assert_eq!(record.workload, "ping");
    assert!(run.stderr.contains("--store"), "{}", run.stderr);
}

#[test]
fn a_full_disk_keeps_the_record_as_a_file() {
    let database = database("storing_full_disk");
    let folder = folder("full-disk");
    let store = folder.join("runs.sqlite");
    let line = "run ping --duration 200ms --warmup 0 --interval 100ms";
    CommandOutput::run(database.command(line).env("RIOPS_STORE", &store)).expect(0);
    // No process of this shell can write to the second half of the store, as on a full disk; this also holds for
    // root.
    let blocks = std::fs::metadata(&store).unwrap().len() / 512 / 2;
    let mut shell = Command::new("sh");
    let script = format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$0\" \"$@\"");
    let command = database.command(line);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.args(["-c", &script]).arg(binary()).args(line.split(' '));
    shell.env("RIOPS_STORE", &store).current_dir(&folder);
    let run = CommandOutput::run(&mut shell).expect(1);
    let record = kept_record(&run, &folder);
    assert!(run.stdout.contains("stored       NO:"), "{}", run.stdout);
    // The store has the first run, and accepts the second one later.
    let location = StoreLocation::File(store);
    let store: Store = store::open(&location, &Interrupt::new()).unwrap();
    assert_eq!(store.list(&RunFilter::default()).unwrap().len(), 1);
    store.save(&record).unwrap();
    assert_eq!(store.find("last").unwrap(), record);
}

#[test]
fn a_password_in_the_location_of_the_store_is_never_printed() {
    let database = database("store_password");
    let password = "hidden-secret";
    let mut admin = database.connect();
    admin.execute(&format!("create role team login password '{password}'")).unwrap();
    admin.execute("grant create on database store_password to team").unwrap();
    let tcp = crate::fixture::tcp_url("store_password");
    let (_, server) = tcp.rsplit_once('@').unwrap();
    let url = format!("postgresql://team:{password}@{server}");
    let mut run = database.command("run ping --duration 100ms --warmup 0 --interval 100ms");
    let run = CommandOutput::run(run.env("RIOPS_STORE", &url)).expect(0);
    let listed = CommandOutput::run(command("runs list").env("RIOPS_STORE", &url)).expect(0);
    let shown = CommandOutput::run(command("runs show").env("RIOPS_STORE", &url)).expect(0);
    let wrong = url.replace(password, "wrong-secret");
    let refused = CommandOutput::run(command("runs list").env("RIOPS_STORE", &wrong)).expect(1);
    let missing = CommandOutput::run(
        command("runs show").env("RIOPS_STORE", url.replace("/store_password", "/nowhere")),
    )
    .expect(1);
    for output in [&run, &listed, &shown, &refused, &missing] {
        for text in [&output.stdout, &output.stderr] {
            assert!(!text.contains(password) && !text.contains("wrong-secret"), "{text}");
        }
    }
    assert!(shown.stdout.contains("stored"), "{}", shown.stdout);
}
