//! Files that riops writes, and outputs that cannot be written: full disks, limits, closed outputs, rights.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::fixture::{CommandOutput, binary, command, database, folder, is_root, start_until};

/// Runs riops in a shell that changes the process before: `riops` in the script is the program.
fn shell(script: &str, folder: &Path) -> CommandOutput {
    let mut shell = Command::new("sh");
    let script = script.replace("riops", "\"$0\"");
    let store = folder.join("runs.sqlite");
    shell.arg("-c").arg(script).arg(binary()).current_dir(folder).env("RIOPS_STORE", store);
    CommandOutput::run(shell.env("TMPDIR", folder).env_remove("RIOPS_DATABASE"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Creates a store with one run.
fn store_with_a_run(folder: &Path) {
    let record =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records/rows.json");
    fs::copy(record, folder.join("run.json")).unwrap();
    shell("riops runs import run.json", folder).expect(0);
    fs::remove_file(folder.join("run.json")).unwrap();
}

#[test]
fn a_result_for_a_closed_standard_output_is_an_error() {
    let folder = folder("closed_output");
    store_with_a_run(&folder);
    let results = [
        "--help",
        "-h",
        "--version",
        "run rows --help",
        "help run",
        "run rows --dump-plan",
        "run rows --dump-plan -d postgresql://me:secret@h/db",
        "runs list",
        "runs show last --output json",
        "report last -o markdown",
        "runs export last -o csv",
        "runs history",
        "pgbench --version",
        "sysbench --version",
        "sweep rows --batch 1,2 --duration 1s --dry-run",
    ];
    for line in results {
        shell(&format!("exec riops {line} >/dev/null"), &folder).expect(0);
        let closed = shell(&format!("exec riops {line} >&-"), &folder).expect(1);
        closed.stderr_contains("cannot write the result: standard output is closed");
        let full = shell(&format!("exec riops {line} >/dev/full"), &folder).expect(1);
        full.stderr_contains("cannot write the result: No space left on device");
        // Python and Node.js discard an output in this way.
        shell(&format!("exec riops {line} 1<>/dev/null"), &folder).expect(0);
    }
    shell("exec riops --version 1</dev/null", &folder)
        .expect(1)
        .stderr_contains("Bad file descriptor");
    shell("{ riops --help; echo $? >&2; } | true", &folder).expect(0).stderr_contains("0\n");
}

#[test]
fn a_full_disk_leaves_no_partial_file_and_keeps_the_old_one() {
    let folder = folder("full_disk");
    store_with_a_run(&folder);
    let Some(disk) = SmallDisk::mount_in(&folder) else {
        return;
    };
    let lines = [
        ("report last -o html=disk/out", "disk/out"),
        ("runs export last -o json=disk/out", "disk/out"),
        ("report last -o png=disk", "disk/riops-"),
        ("generate csv --rows 100000 --sessions 1 --force --dir disk", "disk/"),
    ];
    for (line, name) in lines {
        let failed = shell(&format!("exec riops {line}"), &folder).expect(1);
        failed
            .stderr_contains("cannot write ")
            .stderr_contains(name)
            .stderr_contains("No space left");
        assert_eq!(names(&disk.folder), Vec::<String>::new(), "{line}");
    }
    fs::write(disk.folder.join("out"), "old").unwrap();
    shell("exec riops report last -o html=disk/out", &folder).expect(1);
    assert_eq!(fs::read_to_string(disk.folder.join("out")).unwrap(), "old");
    assert_eq!(names(&disk.folder), ["out"]);
}

/// A disk of 8 KiB. Dropping it unmounts it.
struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Returns `None`, and the test is skipped, if this user cannot mount.
    fn mount_in(folder: &Path) -> Option<Self> {
        let folder = folder.join("disk");
        fs::create_dir(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=8k", "tmpfs"]).arg(&folder).stderr(Stdio::null());
        let is_mounted = is_root() && mount.status().is_ok_and(|status| status.success());
        is_mounted.then_some(Self { folder })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).status();
    }
}

#[test]
fn a_log_of_transactions_on_a_full_disk_is_an_error() {
    let database = database("full_disk_log");
    let folder = folder("full_disk_log_files");
    let Some(disk) = SmallDisk::mount_in(&folder) else {
        return;
    };
    fs::write(folder.join("a.sql"), "select 1;\n").unwrap();
    let mut command = command("pgbench -n -t 9000 -l --log-prefix=disk/log -f a.sql");
    let failed = CommandOutput::run(
        command.arg(&database.url).env("RIOPS_STORE", &database.store).current_dir(&folder),
    );
    assert_ne!(failed.code, Some(0), "{}", failed.stdout);
    failed.stderr_contains("cannot write the log").stderr_contains("No space left");
    // The log is visible during the run, as pgbench's log is.
    assert_eq!(names(&disk.folder).len(), 1);
}

#[test]
fn the_limit_of_the_file_size_is_an_error_and_no_signal() {
    let database = database("file_size");
    let folder = folder("file_size_files");
    store_with_a_run(&folder);
    let line = "exec riops runs export last -o json=out";
    let failed = shell(&format!("ulimit -f 1; {line}"), &folder).expect(1);
    failed.stderr_contains("cannot write out").stderr_contains("File too large");
    assert_eq!(names(&folder), ["runs.sqlite"]);
    // The store grows during the run only.
    let run = "exec riops run ping --transactions 50 --warmup 0 --label x -d";
    let ran = shell(&format!("ulimit -f 1; {run} '{}'", database.url), &folder).expect(1);
    ran.stderr_contains("the store").stderr_contains("riops:");
    assert!(!names(&folder).iter().any(|name| name.starts_with(".riops-")));
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

#[test]
fn files_of_the_user_have_no_rights_for_others() {
    let database = database("private_files");
    let home = folder("private_files_home");
    let (data, url) = (home.join("share/riops"), &database.url);
    let mut run = Command::new("sh");
    let script = "umask 0; exec \"$0\" run ping --duration 1h --warmup 0 --interval 100ms";
    run.args(["-c", script]).arg(binary()).env_remove("RIOPS_STORE").env("RIOPS_DATABASE", url);
    let mut child = start_until(run.env("XDG_DATA_HOME", home.join("share")), "tx/s");
    let live = data.join("runs.sqlite.live");
    let file = live.join(&names(&live)[0]);
    let modes = [&home.join("share"), &data, &live].map(|path| mode(path));
    let files = [&data.join("runs.sqlite"), &file].map(|path| mode(path));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((modes, files), ([0o700; 3], [0o600; 2]));
    // The files of the killed run are removed by the next one; others stay.
    let others = ["notes.jsonl", "01890000-0000-7000-8000-0000000000aa.jsonl", "a.new"];
    for other in others {
        fs::write(live.join(other), "{\"id\":\"of something else\"}\n").unwrap();
    }
    let mut next = command("run ping --transactions 5 --warmup 0");
    next.env("RIOPS_DATABASE", url).env("XDG_DATA_HOME", home.join("share"));
    CommandOutput::run(&mut next).expect(0);
    let mut left = others.map(str::to_owned);
    left.sort();
    assert_eq!(names(&live), left);
}

#[test]
fn an_output_keeps_its_rights_and_does_not_follow_links_of_others() {
    let folder = folder("output_rights");
    store_with_a_run(&folder);
    let out = folder.join("out");
    shell("umask 027; exec riops report last -o html=out", &folder).expect(0);
    assert_eq!(mode(&out), 0o640);
    fs::set_permissions(&out, fs::Permissions::from_mode(0o604)).unwrap();
    shell("exec riops report last -o html=out", &folder).expect(0).stderr_contains("replaced out");
    assert_eq!(mode(&out), 0o604);
    // A file that is open already is not replaced.
    let export = "exec riops runs export last -o csv=/dev/stdout >> all";
    shell(&format!("echo first > all; {export}"), &folder).expect(0);
    assert!(fs::read_to_string(folder.join("all")).unwrap().starts_with("first\nrun_id,"));
    if !is_root() {
        return;
    }
    let shared = folder.join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    let before = File::open(&out).unwrap().metadata().unwrap().ino();
    for name in ["link", "riops-link.png", "graph.png"] {
        std::os::unix::fs::symlink(&out, shared.join(name)).unwrap();
        std::os::unix::fs::lchown(shared.join(name), Some(65_533), Some(65_533)).unwrap();
    }
    for line in [
        "report last -o html=shared/link",
        "report last -o markdown=shared/link",
        "runs export last -o csv=shared/link",
    ] {
        let refused = shell(&format!("exec riops {line}"), &folder).expect(1);
        refused.stderr_contains("shared/link is a symbolic link of another user");
    }
    assert_eq!(fs::metadata(&out).unwrap().ino(), before);
}

#[test]
fn the_root_directory_and_a_file_are_no_home_directory() {
    let file = folder("home_file").join("file");
    std::fs::write(&file, "").unwrap();
    for home in [Path::new("/"), &file] {
        let mut listing = command("runs list");
        listing.env("HOME", home).env_remove("XDG_DATA_HOME");
        let shown = CommandOutput::run(&mut listing).expect(0);
        assert!(!shown.stderr.contains("/.local/share"), "{home:?}: {}", shown.stderr);
    }
}

#[test]
fn the_first_signal_ends_the_wait_for_a_file() {
    let folder = folder("waiting_for_a_file");
    let path = folder.join("fifo");
    CommandOutput::run(Command::new("mkfifo").arg(&path)).expect(0);
    // With a writer that writes nothing, it can be opened.
    let _writer = File::options().read(true).write(true).open(&path).unwrap();
    for line in
        ["script check --offline", "run script -f", "run --plan", "sweep", "gate", "pgbench -n -f"]
    {
        let mut command = command(line);
        command.arg(&path).current_dir(&folder).env("RIOPS_STORE", folder.join("runs.sqlite"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let descriptors = PathBuf::from(format!("/proc/{}/fd", child.id()));
        let reads = |entry: std::io::Result<fs::DirEntry>| {
            fs::read_link(entry.unwrap().path()).is_ok_and(|link| link == path)
        };
        while !fs::read_dir(&descriptors).unwrap().any(reads) {
            std::thread::yield_now();
        }
        crate::crash::kill(child.id(), "-TERM");
        let status = child.wait().unwrap();
        // pgbench dies of the signal, before riops handles it.
        assert!(status.code().is_none_or(|code| code == 130), "{line}: {status}");
    }
}
