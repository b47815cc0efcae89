//! Settings of the server during a run: in effect in its sessions, and restored whatever happens. On servers that these tests
//! start, because the settings of a whole server change, and with two releases where both are installed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use riops::host::Interrupt;
use riops::server::{ConnInfo, Connection};

use crate::crash::kill;
use crate::fixture::{
    CommandOutput, command, database, folder, installed_postgresql, is_root, open, server_dir,
    start_until,
};
use crate::server::command_on;

/// The user that runs it, if the tests run as root.
const USER: &str = "65534";

/// A server that riops did not start.
struct OwnServer {
    programs: PathBuf,
    folder: PathBuf,
}

impl OwnServer {
    fn start(release: &Path, name: &str) -> Self {
        let own = Self { programs: release.join("bin"), folder: folder(name) };
        if is_root() {
            assert!(Command::new("chown").arg(USER).arg(&own.folder).status().unwrap().success());
        }
        let data = own.folder.join("data");
        own.execute("initdb", &format!("-D {} -U me -A trust --no-sync", data.display()));
        let socket = own.folder.display();
        let settings = format!(
            "listen_addresses = ''\nunix_socket_directories = '{socket}'\nshared_buffers = 16MB\n"
        );
        let file = data.join("postgresql.conf");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text + &settings).unwrap();
        own.control("start");
        own
    }

    /// Runs a program of the server, which refuses to run as root.
    fn execute(&self, program: &str, arguments: &str) {
        let ran = Command::new("sh").args(["-c", &self.line(program, arguments)]).output().unwrap();
        assert!(ran.status.success(), "{program}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    fn line(&self, program: &str, arguments: &str) -> String {
        let user = format!("setpriv --reuid={USER} --regid={USER} --clear-groups ");
        let user = if is_root() { user } else { String::new() };
        format!("{user}{} {arguments} >/dev/null", self.programs.join(program).display())
    }

    fn control(&self, action: &str) {
        self.execute("pg_ctl", &self.arguments(action));
    }

    fn arguments(&self, action: &str) -> String {
        let folder = self.folder.display();
        format!("-D {folder}/data -l {folder}/log -m fast -w {action}")
    }

    fn restart(&self) -> String {
        self.line("pg_ctl", &self.arguments("restart"))
    }

    fn address(&self) -> String {
        format!("host={} user=me dbname=postgres", self.folder.display())
    }

    fn connect(&self) -> Connection {
        open(&ConnInfo::parse(&self.address(), |_| None).unwrap())
    }

    fn value(&self, sql: &str) -> String {
        self.connect().query_value(sql).unwrap().unwrap_or_default()
    }

    /// The command with this server as its target.
    fn command(&self, line: &str) -> Command {
        let mut command = command(line);
        command.env("RIOPS_DATABASE", self.address());
        command.env("RIOPS_STORE", self.folder.join("runs.sqlite"));
        command
    }

    fn riops(&self, line: &str) -> CommandOutput {
        CommandOutput::run(&mut self.command(line))
    }

    /// Starts a run with a setting of each level, and waits until it measures.
    fn start_run(&self) -> Child {
        let line = "run ping --duration 1h --warmup 0 --setting work_mem=8MB --setting autovacuum_naptime=10s --setting shared_buffers=24MB --restart";
        start_until(self.command(line).arg(self.restart()), "measuring")
    }

    /// The values of the settings of [`Self::start_run`] in a new session, and what ALTER SYSTEM has set.
    fn state(&self) -> (String, String) {
        let values = "select current_setting('work_mem') || ' ' || current_setting('autovacuum_naptime') || ' ' || current_setting('shared_buffers')";
        let of_file = "select string_agg(name || '=' || setting, ' ' order by name) from pg_file_settings where sourcefile like '%auto.conf'";
        (self.value(values), self.value(of_file))
    }

    fn assert_restored(&self) {
        assert_eq!(self.state(), ("4MB 1min 16MB".to_owned(), String::new()));
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let line = self.line("pg_ctl", &self.arguments("stop"));
        let _ = Command::new("sh").args(["-c", &line]).status();
    }
}

/// The installed releases.
fn releases() -> impl Iterator<Item = PathBuf> {
    installed_postgresql().into_iter().chain([server_dir().to_owned()])
}

#[test]
fn a_run_has_its_settings_and_the_server_gets_back_its_own() {
    for (position, release) in releases().enumerate() {
        let server = OwnServer::start(&release, &format!("settings-{position}"));
        server.connect().execute("alter system set autovacuum_naptime = '1min'").unwrap();
        let script = server.folder.join("script.sql");
        // A division by zero fails the run.
        let sql = "select 1 / (current_setting('work_mem') = '8MB' and current_setting('autovacuum_naptime') = '10s' and current_setting('shared_buffers') = '24MB')::int;\n";
        std::fs::write(&script, sql).unwrap();
        let line = "run script --duration 200ms --warmup 0 -o json --setting work_mem=8MB --setting autovacuum_naptime=10s --setting shared_buffers=24MB";
        let mut run = server.command(line);
        let ran =
            CommandOutput::run(run.arg("--restart").arg(server.restart()).arg("-f").arg(&script));
        let settings = &ran.expect(0).json()["target"]["settings"];
        let recorded =
            ["work_mem", "autovacuum_naptime", "shared_buffers"].map(|name| &settings[name]);
        assert_eq!(recorded, ["8MB", "10s", "24MB"]);
        assert_eq!(
            server.state(),
            ("4MB 1min 16MB".to_owned(), "autovacuum_naptime=1min".to_owned()),
            "the value of ALTER SYSTEM is back, too"
        );
    }
}

#[test]
fn the_settings_of_a_killed_run_are_restored_by_a_command() {
    for (position, release) in releases().enumerate() {
        let server = OwnServer::start(&release, &format!("settings-killed-{position}"));
        let mut run = server.start_run();
        let waiting =
            server.riops("run ping --duration 100ms --warmup 0 --setting autovacuum_naptime=9s");
        waiting.expect(2).stderr_contains("another riops has changed settings of this server");
        kill(run.id(), "-KILL");
        run.wait().unwrap();
        let guard =
            "select count(*) from pg_stat_activity where application_name = 'riops settings'";
        while server.value(guard) != "0" {
            std::thread::yield_now();
        }
        assert_eq!(server.state().0, "4MB 10s 24MB");
        let next = server.riops("run ping --duration 100ms --warmup 0 -q");
        let text = "left settings of this server changed (autovacuum_naptime, shared_buffers): `riops server restore -d 'host=";
        next.expect(0).stderr_contains(text);
        server.riops("doctor").expect(0).stdout_contains("left settings of this server changed");
        let refused = server.riops("run ping --setting autovacuum_naptime=9s");
        refused.expect(2).stderr_contains("are not restored yet");
        server.riops("server restore").expect(2).stderr_contains("--restart names the command");
        let mut restore = server.command("server restore --restart");
        let restored = CommandOutput::run(restore.arg(server.restart())).expect(0);
        assert_eq!(restored.stdout, "restored: autovacuum_naptime, shared_buffers\n");
        server.assert_restored();
        let again = server.riops("server restore").expect(0);
        assert_eq!(again.stdout, "no setting was left changed\n");
    }
}

#[test]
fn settings_are_restored_after_ctrl_c_and_after_a_crash_of_the_server() {
    let server = OwnServer::start(server_dir(), "settings-ended");
    let mut run = server.start_run();
    kill(run.id(), "-INT");
    assert_eq!(run.wait().unwrap().code(), Some(130));
    server.assert_restored();
    let mut run = server.start_run();
    server.execute("pg_ctl", &server.arguments("-m immediate restart"));
    // The sessions reconnect, and the run goes on.
    kill(run.id(), "-INT");
    run.wait().unwrap();
    server.assert_restored();
}

#[test]
fn settings_that_cannot_be_changed_are_refused_and_nothing_changes() {
    let server = OwnServer::start(server_dir(), "settings-refused");
    let refusals = [
        ("work_men=8MB", 2, "has no setting \"work_men\"; did you mean work_mem?"),
        ("work_mem=8XB", 1, "invalid value for parameter \"work_mem\""),
        ("block_size=4096", 2, "block_size is fixed"),
        ("shared_buffers=24MB", 2, "--restart names the command"),
        ("autovacuum_naptime=abc", 1, "invalid value for parameter \"autovacuum_naptime\""),
        ("a;b=1", 2, "expected NAME=VALUE"),
    ];
    for (setting, code, text) in refusals {
        // The first setting is valid, and must not remain.
        let line =
            format!("run ping --duration 100ms --setting archive_timeout=1h --setting {setting}");
        server.riops(&line).expect(code).stderr_contains(text);
        server.assert_restored();
    }
    // A command that does not restart the server.
    let line = "run ping --duration 100ms --setting shared_buffers=24MB --restart true";
    server.riops(line).expect(1).stderr_contains("the server was not restarted");
    server.assert_restored();
}

#[test]
fn a_server_that_others_use_is_changed_only_with_trust() {
    let server = OwnServer::start(server_dir(), "settings-shared");
    let address = format!("{} application_name=accounting", server.address());
    let info = ConnInfo::parse(&address, |_| None).unwrap();
    let other = Connection::open(&info, &Interrupt::new()).unwrap();
    let line = "run ping --duration 100ms --warmup 0 --setting autovacuum_naptime=10s";
    let refused = server.riops(line).expect(2);
    let refused = refused.stderr_contains("others use this server: accounting of me");
    drop(refused.stderr_contains("--trust"));
    server.assert_restored();
    server.riops(&format!("{line} --trust")).expect(0);
    // A session setting concerns no other session.
    server.riops("run ping --duration 100ms --warmup 0 --setting work_mem=8MB").expect(0);
    server.assert_restored();
    drop(other);
}

#[test]
fn an_ab_test_varies_a_setting() {
    let database = database("settings_ab");
    let line = "ab ping --vary synchronous_commit=on,off --rounds-max 4 --duration 100ms --warmup 0 -o json -q";
    let test = database.riops(line).expect(0).json();
    assert_eq!(test["axes"][0]["name"], "synchronous_commit", "{test}");
    let runs = database.riops("runs list -o json").expect(0).json();
    let id = runs[0]["id"].as_str().unwrap().to_owned();
    let run = database.riops(&format!("runs show {id} -o json")).expect(0).json();
    let planned = &run["plan"]["settings"]["synchronous_commit"];
    assert_eq!(planned, &run["target"]["settings"]["synchronous_commit"], "{run}");
    // An option of the run can be varied in the same way, and so can the settings of the embedded server.
    let line = "ab ping --vary sessions=1,2 --dry-run";
    database.riops(line).expect(0).stdout_contains("sessions=2");
    let home = folder("settings-embedded");
    let line =
        "ab ping --vary work_mem=5MB,6MB --rounds-max 4 --duration 100ms --warmup 0 -o json -q";
    let test = CommandOutput::run(&mut command_on(&home, line)).expect(0).json();
    assert_eq!(test["axes"][0]["values"][1], "6MB", "{test}");
    // A file must not change a server, nor name the command that restarts it.
    let file = home.join("file.toml");
    for (text, refusal) in [
        ("workload = 'ping'\n[axes]\n'set.work_mem' = ['4MB', '8MB']\n", "permit it with --trust"),
        ("workload = 'ping'\n[options]\nsetting = 'work_mem=4MB'\n", "permit it with --trust"),
        ("workload = 'ping'\n[options]\nrestart = 'true'\n", "accepted on the command line only"),
    ] {
        std::fs::write(&file, text).unwrap();
        let line = format!("sweep {} --dry-run", file.display());
        database.riops(&line).expect(2).stderr_contains(refusal);
    }
    database.riops("ab ping --vary work_mem=4MB").expect(2).stderr_contains("expected two values");
    database.riops("ab ping").expect(2).stderr_contains("--vary");
    database
        .riops("ab ping --vary work_mem=4MB,8MB --repeat 3")
        .expect(2)
        .stderr_contains("--rounds-max");
}

#[test]
fn a_run_starts_with_vacuumed_tables_and_a_checkpoint() {
    let database = database("settings_clean");
    let prepare = "run rows --prepare --rows 2000 --batch 10 --update-percent 100 --duration 200ms --warmup 0 -q";
    database.riops(prepare).expect(0);
    let checkpoint = "select redo_lsn::text from pg_control_checkpoint()";
    let before = database.value(checkpoint);
    let vacuums = "select vacuum_count::text from pg_stat_user_tables where relname = 'rows_0001'";
    let vacuumed = database.value(vacuums);
    let run = "run rows --batch 10 --duration 100ms --warmup 0 --checkpoint --vacuum=freeze --settle 10ms";
    let ran = database.riops(run).expect(0);
    drop(ran.stdout_contains("before       VACUUM (freeze), CHECKPOINT, pause of 10ms"));
    assert_ne!(database.value(checkpoint), before);
    assert_ne!(database.value(vacuums), vacuumed);
    let line = "run ping --vacuum --duration 100ms";
    database.riops(line).expect(2).stderr_contains("--vacuum has no effect: the workload ping");
    let line = "run ping --settle 1s --duration 100ms";
    database.riops(line).expect(2).stderr_contains("requires --repeat, --checkpoint or --vacuum");
    let [a, b] = ["", "--checkpoint"].map(|option| {
        let line = format!("run rows --batch 10 --duration 100ms --warmup 0 -o json {option}");
        database.riops(&line).expect(0).json()["id"].as_str().unwrap().to_owned()
    });
    let compared = database.riops(&format!("compare {a} {b}")).expect(0);
    drop(compared.stdout_contains("clean_start.checkpoint"));
}

#[test]
fn commands_before_and_after_each_run_know_its_cell_and_their_output_is_kept() {
    let database = database("settings_hooks");
    let home = folder("settings-hooks");
    let file = home.join("hooks.toml");
    // Each run finds what its cell requires, and the next one does not.
    let text = format!(
        "workload = 'ping'\nrepeat = 2\n[axes]\nsessions = [1, 2]\n[between]\nbefore = 'echo \"$RIOPS_CELL $RIOPS_ROUND $PGDATABASE\"; echo \"$RIOPS_CELL\" >> {0}/before'\nafter = 'echo done >> {0}/after'\n",
        home.display()
    );
    std::fs::write(&file, &text).unwrap();
    let line = format!("sweep {} --set duration=100ms --set warmup=0 -q", file.display());
    database.riops(&line).expect(2).stderr_contains("permit it with --trust");
    database.riops(&format!("{line} --trust")).expect(0);
    let lines = |name: &str| std::fs::read_to_string(home.join(name)).unwrap().lines().count();
    assert_eq!((lines("before"), lines("after")), (4, 4));
    let run = database.riops("runs show last -o json").expect(0).json();
    let note = run["notes"][0]["text"].as_str().unwrap().to_owned();
    assert!(note.starts_with("before: sessions=") && note.ends_with("settings_hooks"), "{note}");
    assert_eq!(run["notes"].as_array().unwrap().len(), 1, "the other one prints nothing: {run}");
    // A command that fails is the error of the run, with its output.
    std::fs::write(&file, text.replace("echo done", "echo broken >&2; false")).unwrap();
    let failed = database.riops(&format!("{line} --trust"));
    let failed = failed.stderr_contains("broken");
    assert_ne!(failed.code, Some(0));
}
