//! A secret in any input is in no output: neither printed, nor stored, nor published.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::{CommandOutput, Database, command, database, folder, program, tcp_url};

const SECRET: &str = "pl4nted-s3cret";

/// A role with the password, and a folder for all files that riops writes.
struct Place {
    database: Database,
    folder: PathBuf,
    /// The URL of the database with the password, and its parts.
    url: String,
    host: String,
    port: String,
}

impl Place {
    fn new() -> Self {
        let database = database("planted");
        let role = format!("create role planted login superuser password '{SECRET}'");
        database.connect().execute(&role).unwrap();
        let url = tcp_url("planted");
        let (_, place) = url.split_once('@').unwrap();
        let (host, port) = place.split_once('/').unwrap().0.rsplit_once(':').unwrap();
        let (host, port) = (host.to_owned(), port.to_owned());
        let url = format!("postgresql://planted:{SECRET}@{place}");
        Self { database, folder: folder("planted"), url, host, port }
    }

    fn command(&self, line: &str, more: &[&str]) -> Command {
        let mut command = command(line);
        command.args(more).current_dir(&self.folder).env("HOME", &self.folder);
        command.env("RIOPS_STORE", self.folder.join("runs.sqlite"));
        command
    }

    /// Runs a command whose output must not have the secret.
    fn riops(&self, line: &str, more: &[&str]) -> CommandOutput {
        run_checked(&mut self.command(line, more))
    }
}

fn run_checked(command: &mut Command) -> CommandOutput {
    let output = CommandOutput::run(command);
    let shown = format!("{}{}", output.stdout, output.stderr);
    assert!(!shown.contains(SECRET), "{command:?}\n{shown}");
    output
}

/// Returns the files that have the secret.
fn files_with_secret(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_with_secret(&path, files);
        } else if fs::read(&path)
            .unwrap_or_default()
            .windows(SECRET.len())
            .any(|part| part == SECRET.as_bytes())
        {
            files.push(path);
        }
    }
}

fn write_private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_secret_in_a_connection_is_neither_printed_nor_stored() {
    let place = Place::new();
    let Place { url, host, port, .. } = &place;
    let run = "run ping -c 1 --warmup 0 --duration 50ms";
    let pairs = format!("host={host} port={port} user=planted dbname=planted password='{SECRET}'");
    let query = format!("postgresql://{host}:{port}/planted?user=planted&p%61ssword={SECRET}");
    for database in [url, &pairs, &query] {
        place.riops(run, &["-d", database]).expect(0);
    }
    place.riops("doctor", &["-d", url]);
    place.riops("prepare rows --rows 10", &["-d", url]).expect(0);
    place.riops("verify rows", &["-d", url]).expect(0);
    place.riops("verify load", &["-d", url]);
    let open = format!("postgresql://planted@{host}:{port}/planted");
    run_checked(place.command(run, &["-d", &open]).env("PGPASSWORD", SECRET)).expect(0);
    run_checked(place.command(run, &[]).env("RIOPS_DATABASE", url)).expect(0);
    // Free texts are stored and published as they are.
    for option in ["--label", "--note"] {
        place.riops(run, &["-d", url, option, url]).expect(2).stderr_contains("must not contain");
    }
    for option in ["--tag", "--fact"] {
        place.riops(run, &["-d", url, option, &format!("password={SECRET}")]).expect(2);
    }
    place.riops("runs note last", &[url]).expect(2);
    place.riops(run, &["--store", url, "--output", "json", "-d", url]).expect(0);
    place.riops("runs list --store", &[url]).expect(0);
    place.riops("runs show no-such-run --store", &[url]);
    let password_file = place.folder.join("input.pgpass");
    write_private(&password_file, &format!("*:*:*:*:{SECRET}\nrest {SECRET}"));
    run_checked(place.command(run, &["-d", &open]).env("PGPASSFILE", &password_file)).expect(0);
    let service = place.folder.join("input.service");
    fs::write(
        &service,
        format!(
            "[good]\n{}\n[bad]\npassword {SECRET}\n",
            pairs.replace(' ', "\n").replace('\'', "")
        ),
    )
    .unwrap();
    for (name, code) in [("good", 0), ("bad", 2)] {
        let mut command = place.command(run, &["-d", &format!("service={name}")]);
        run_checked(command.env("PGSERVICEFILE", &service)).expect(code);
    }
    let sweep = "sweep ping --axis sessions=1,2 --repeat 1 --warmup 0 --duration 50ms";
    place.riops(sweep, &["-d", url]).expect(0);
    place.riops(sweep, &["--set", &format!("database={url}")]).expect(2);
    let config = place.folder.join("input.toml");
    fs::write(&config, format!("database = \"{url}\"\n")).unwrap();
    place.riops(run, &["--config", &config.to_string_lossy()]).expect(0);
    fs::write(&config, format!("database = \"u/{SECRET}@{host}\"\n")).unwrap();
    place.riops(run, &["--config", &config.to_string_lossy()]).expect(2);
    let experiment =
        format!("run = \"ping\"\n[options]\ndatabase = \"{url}\"\n[axes]\nsessions = [1, 2]\n");
    fs::write(&config, experiment).unwrap();
    place.riops("sweep", &[&config.to_string_lossy()]);
    place
        .riops(run, &["-d", url, "--metrics-push", &format!("http://u:{SECRET}@127.0.0.1:1/push")]);
    place
        .riops(run, &["-d", url, "--prometheus", &format!("http://u:{SECRET}@127.0.0.1:1")])
        .expect(2);
    place
        .riops(run, &["-d", url, "--prometheus", &format!("http://127.0.0.1:1/?token={SECRET}")])
        .expect(2);
    place.riops(run, &["-d", url, "--metrics-listen", "127.0.0.1:0", "--metrics-token", SECRET]);
    export_all(&place);
}

/// Shows, exports and publishes all stored runs, and searches all files that riops wrote.
fn export_all(place: &Place) {
    let page = place.folder.join("page.html").display().to_string();
    for line in [
        "runs list",
        "runs list --output json",
        "runs show last",
        "runs show last --output json",
        "runs export last",
        "runs export last --output csv",
        "report last --output markdown",
        "experiments list",
        "experiments show last",
        "gallery site",
        "gallery site-with --with-hosts",
        "compare all",
    ] {
        place.riops(line, &[]);
    }
    place.riops("report last -o", &[&page]);
    let table = place.database.value(
        "select count(*) from riops_store.runs as stored where stored::text like '%pl4nted-s3cret%'",
    );
    assert!(table.is_none_or(|count| count == "0"));
    let mut leaks = Vec::new();
    files_with_secret(&place.folder, &mut leaks);
    leaks.retain(|path| !path.file_name().unwrap().to_string_lossy().starts_with("input."));
    assert!(leaks.is_empty(), "{leaks:?}");
}

#[test]
fn a_secret_in_an_observed_command_is_neither_printed_nor_stored() {
    let database = database("observed_secret");
    let folder = folder("observed-secret");
    let environment = format!("PGPASSWORD={SECRET}");
    let url = format!("postgresql://u:{SECRET}@h/db");
    let (option, pairs) = (format!("--password={SECRET}"), format!("host=h password={SECRET}"));
    let script = format!("PGPASSWORD='{SECRET}' true");
    let riops = |line: &str, more: &[&str]| {
        let mut command = command(line);
        command.args(more).env("RIOPS_DATABASE", &database.url).current_dir(&folder);
        run_checked(command.env("RIOPS_STORE", folder.join("runs.sqlite")))
    };
    for words in [
        vec!["true", &url],
        vec!["true", "-d", &pairs],
        vec!["true", &option],
        vec!["env", &environment, "true"],
        vec!["true", "--password", SECRET],
        vec!["sh", "-c", &script],
        vec!["true", "-u", &format!("u:{SECRET}")],
        vec![&format!("u/{SECRET}@h")],
    ] {
        let output = riops("observe --output json --", &words);
        assert!(
            output.code == Some(if words.len() == 1 { 127 } else { 0 }) || output.code == Some(1),
            "{}",
            output.stderr
        );
    }
    riops("observe --command", &[&script]).expect(0);
    if program("psql").is_some() {
        // The command gets the password itself.
        let url = tcp_url("observed_secret");
        riops("observe -- psql -qc", &["select 1", &url]).expect(0);
    }
    riops("runs list --output json", &[]).expect(0);
    riops("runs show last", &[]).expect(0).stdout_contains("***");
    riops("runs rerun last --trust", &[]).expect(2).stderr_contains("was not stored");
    riops("gallery site", &[]).expect(0);
    let mut leaks = Vec::new();
    files_with_secret(&folder, &mut leaks);
    assert!(leaks.is_empty(), "{leaks:?}");
}

#[test]
fn a_mistyped_address_is_refused_without_being_shown() {
    let folder = folder("mistyped-secret");
    for address in [
        format!("u/{SECRET}@h"),
        format!("u/{SECRET}@h:5432/db"),
        format!("postgres:/u:{SECRET}@h"),
        format!("u:{SECRET}@h"),
        format!("postgresql:u:{SECRET}@h"),
        format!("jdbc:postgresql://h/db?user=u&password={SECRET}"),
        format!("host=h password=a {SECRET}"),
        format!("h?password={SECRET}"),
    ] {
        for line in [
            "run ping -d",
            "run ping --store",
            "run ping",
            "runs list --store",
            "verify rows -d",
            "doctor -d",
            "sweep ping --axis sessions=1 -d",
            "observe --for 1s -d",
            "pgbench -n",
            "compare",
            "runs show",
            "report",
            "run ping --server-port",
            "run ping -c",
            "prepare rows -d",
            "run ping --prometheus",
            "run ping --metrics-push",
            "fleet manifest --agents 2 --image i -- run ping -d",
            "runs import",
            "ysql-bench -o insert",
        ] {
            let mut command = command(line);
            command.arg(&address).current_dir(&folder).env("HOME", &folder);
            command.env("XDG_DATA_HOME", folder.join("data")).env("PGCONNECT_TIMEOUT", "1");
            let output = run_checked(&mut command);
            assert_ne!(output.code, Some(0), "{line}");
        }
    }
}

#[test]
fn a_line_of_a_file_that_cannot_be_read_is_refused_without_its_secret() {
    let folder = folder("file-secret");
    let file = folder.join("file.toml");
    for text in [
        format!("database = postgresql://u:{SECRET}@h/db\n"),
        format!("database = \"postgresql://u:{SECRET}@h/db\n"),
        format!("database: postgresql://u:{SECRET}@h/db\n"),
        format!("metrics-token = 5{SECRET}\n"),
        format!("database = {{ url = \"postgresql://u:{SECRET}@h/db\" }}\n"),
        format!("[database]\npassword = \"{SECRET}\"\n"),
        format!("[metrics]\ntoken = \"{SECRET}\"\n"),
        format!("prometheus = {{ a = \"http://u:{SECRET}@h\" }}\n"),
    ] {
        std::fs::write(&file, text).unwrap();
        for line in ["run ping --config", "sweep --file", "gate"] {
            let mut command = command(line);
            let output =
                run_checked(command.arg(&file).env("RIOPS_STORE", folder.join("runs.sqlite")));
            assert_ne!(output.code, Some(0), "{line}");
        }
    }
}
