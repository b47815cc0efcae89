//! Commands in errors and results repeat the options of the server, and the `PG*` variables select it.

use crate::fixture::{CommandOutput, command, database, folder, tcp_url};

const RUN: &str = "run rows --transactions 50 --warmup 0 --batch 10 --no-store";

#[test]
fn errors_repeat_the_database() {
    let database = database("hinted");
    let missing = database.riops(RUN).expect(1);
    let command = format!("`riops prepare rows -d '{}'`", database.url);
    missing.stderr_contains(&command);
    let missing = database.riops("verify rows").expect(1);
    missing.stderr_contains(&command);
}

#[test]
fn the_commands_to_try_repeat_the_database_without_its_password() {
    let database = database("hinted_run");
    database.riops("prepare rows --rows 1000").expect(0);
    let url = tcp_url("hinted_run");
    let ran = CommandOutput::run(&mut command(&format!("{RUN} -d {url}"))).expect(0);
    let (login, place) = url.split_once('@').unwrap();
    let (user, password) = login.rsplit_once(':').unwrap();
    let shown = format!("-d {user}@{place} --update-percent 20");
    assert!(
        ran.stdout.contains("omit it: set PGPASSWORD or use a password file"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains(&shown), "{}", ran.stdout);
    assert!(!ran.stdout.contains(password) && !ran.stderr.contains(password), "{}", ran.stdout);
}

#[test]
fn hints_repeat_the_options_of_the_embedded_server_and_the_store() {
    let home = folder("hinted server");
    let mut url = command("server url");
    url.arg("--server-data").arg(&home);
    let hint = format!("`riops server start --server-data '{}'`", home.display());
    CommandOutput::run(&mut url).expect(1).stderr_contains(&hint);
    let store = folder("hinted-store").join("runs.sqlite");
    let mut show = command(&format!("runs show --store {}", store.display()));
    let run = format!("`riops run rows --store {}`", store.display());
    CommandOutput::run(&mut show).expect(1).stderr_contains(&run);
    // Creates an empty store.
    let refused = format!("run rows -d postgresql://me@127.0.0.1:1/x --store {}", store.display());
    CommandOutput::run(&mut command(&refused)).expect(1);
    let mut show = command(&format!("runs show ffffffff --store {}", store.display()));
    let list = format!("`riops runs list --store {}`", store.display());
    CommandOutput::run(&mut show).expect(1).stderr_contains(&list);
}

#[test]
fn each_variable_of_libpq_that_names_a_target_excludes_the_embedded_server() {
    let none = folder("no-server");
    for (name, value) in [
        ("PGHOST", none.to_str().unwrap()),
        ("PGHOSTADDR", "127.0.0.1"),
        ("PGPORT", "1"),
        ("PGDATABASE", "nowhere"),
        ("PGUSER", "nobody"),
    ] {
        let mut run = command("run rows --no-store");
        // An embedded server could not be started here.
        run.env("RIOPS_CACHE_DIR", "/proc/nowhere").env("PGCONNECT_TIMEOUT", "2").env(name, value);
        let ran = CommandOutput::run(&mut run).expect(1);
        assert!(ran.stderr.contains("target: database"), "{name}: {}", ran.stderr);
    }
    let mut run = command("run rows --no-store");
    CommandOutput::run(run.env("PGSERVICE", "nowhere")).expect(2);
}
