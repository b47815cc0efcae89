//! SIGKILL at each change that the main thread of riops makes to files, locks and processes: the next command works.

use std::path::Path;
use std::process::Command;

use crate::fixture::{CommandOutput, folder, program, wrap_command};
use crate::gate::Place;
use crate::server::{command_on, processes};

const CALLS: &str = "chmod,execve,fchmod,fchmodat,fdatasync,flock,fsync,ftruncate,kill,link,linkat,mkdir,mkdirat,\
openat,pwrite64,rename,renameat,renameat2,rmdir,symlink,symlinkat,unlink,unlinkat,vfork,write";

/// Returns the command below strace.
fn trace_command(strace: &Path, options: &[String], command: &Command) -> Command {
    let mut traced = Command::new(strace);
    traced.args(options);
    wrap_command(traced, command)
}

/// Executes a command, and returns its calls that change something. Calls of one name are numbered from 1.
fn changes(strace: &Path, command: &Command, log: &Path) -> Vec<(String, usize)> {
    let options =
        ["-o".to_owned(), log.display().to_string(), "-e".to_owned(), format!("trace={CALLS}")];
    CommandOutput::run(&mut trace_command(strace, &options, command)).expect(0);
    let mut numbers = std::collections::BTreeMap::new();
    let log = std::fs::read_to_string(log).unwrap();
    let calls = log.lines().filter_map(|line| line.split_once('(')).filter_map(|(call, rest)| {
        let count: &mut usize = numbers.entry(call).or_default();
        *count += 1;
        let is_change = match call {
            "openat" => rest.contains("O_CREAT") || rest.contains("O_TRUNC"),
            // Output, and the start of riops itself.
            "write" => !rest.starts_with("1,") && !rest.starts_with("2,"),
            "execve" => *count > 1,
            _ => !call.contains(' '),
        };
        is_change.then(|| (call.to_owned(), *count))
    });
    calls.collect()
}

/// Kills a command at each of its changes, after a preparation. Afterwards, other commands must succeed.
fn kill_at_each_change(
    log: &Path,
    before: &dyn Fn(),
    command: &dyn Fn() -> Command,
    after: &dyn Fn(),
) {
    let Some(strace) = program("strace") else { return };
    // The first execution changes more.
    before();
    CommandOutput::run(&mut command()).expect(0);
    before();
    let changes = changes(&strace, &command(), log);
    assert!(changes.len() > 3, "{changes:?}");
    let mut killed = 0;
    for (call, ordinal) in &changes {
        before();
        let trace = format!("trace={call}");
        let kill = format!("inject={call}:signal=KILL:when={ordinal}");
        let options = ["-o", "/dev/null", "-e", &trace, "-e", &kill].map(str::to_owned);
        let output = trace_command(&strace, &options, &command()).output();
        killed += usize::from(!output.unwrap().status.success());
        after();
    }
    // The last calls of a name may be missing in another execution.
    assert!(4 * killed > 3 * changes.len(), "{killed} of {}", changes.len());
}

/// As [`kill_at_each_change`], for commands of one home.
fn kill_at_each_change_at_home(home: &Path, before: &str, line: &str, after: &[&str]) {
    let succeed = |line: &str| drop(CommandOutput::run(&mut command_on(home, line)).expect(0));
    kill_at_each_change(
        &home.with_extension("log"),
        &|| succeed(before),
        &|| command_on(home, line),
        &|| after.iter().for_each(|line| succeed(line)),
    );
}

#[test]
fn a_server_that_was_killed_at_any_change_starts_again() {
    let home = folder("killed-server");
    kill_at_each_change_at_home(&home, "server stop", "server start", &["server start"]);
    kill_at_each_change_at_home(&home, "server start", "server stop", &["server start"]);
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
    assert_eq!(processes(&home), [0; 0]);
}

#[test]
fn a_dataset_whose_preparation_was_killed_at_any_change_is_prepared_again() {
    let home = folder("killed-prepare");
    CommandOutput::run(&mut command_on(&home, "server start")).expect(0);
    let prepare = "prepare rows --rows 100 --recreate";
    kill_at_each_change_at_home(
        &home,
        "cleanup rows",
        prepare,
        &["prepare rows --rows 100", "verify rows"],
    );
    CommandOutput::run(&mut command_on(&home, "server stop")).expect(0);
}

#[test]
fn a_gallery_whose_writing_was_killed_at_any_change_is_written_again() {
    let home = folder("killed-gallery");
    CommandOutput::run(&mut command_on(&home, "run ping -c 1 --transactions 10 --warmup 0"))
        .expect(0);
    let gallery = format!("gallery {}", home.join("site").display());
    kill_at_each_change_at_home(&home, "runs list", &gallery, &[&gallery]);
}

#[test]
fn a_gate_whose_builds_were_killed_at_any_change_builds_again() {
    let place = Place::new("killed", 2, 2, None);
    let gate = || place.command("gate ../gate.toml --base HEAD~1 --trust --time-limit 1ms");
    let builds = place.folder.join("builds");
    kill_at_each_change(
        &place.folder.join("log"),
        &|| drop(std::fs::remove_dir_all(&builds)),
        &gate,
        // Neither a lock nor half a build remains.
        &|| {
            CommandOutput::run(&mut gate()).expect(0);
            let prefixes = builds.read_dir().unwrap().map(|build| build.unwrap().path());
            assert!(prefixes.into_iter().all(|build| build.join("prefix/bench.sql").is_file()));
        },
    );
}
