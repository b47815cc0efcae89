//! What held under attack must keep holding: rogue servers, changed bytes, signals at any moment, damaged stores, odd names.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use riops_testkit::{FakeServer, Fault, PORT, Proxy, Reply};

use crate::fixture::{CommandOutput, command, database, folder, spin};

const COMMANDS: [&str; 8] = [
    "doctor",
    "prepare rows --rows 2000",
    "run rows --prepare --rows 2000 --no-store",
    "run ping --no-store --transactions 50 --warmup 0",
    "run script -b select-only --no-store --transactions 50 --warmup 0",
    "verify rows",
    "cleanup rows",
    "warm rows",
];

/// Asserts that a command ended in order: with an exit code of riops and without a panic.
fn assert_ended(line: &str, output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked") && !text.contains("RUST_BACKTRACE"), "{line}:\n{text}");
    let code = output.status.code();
    assert!(matches!(code, Some(0..=3 | 99 | 130)), "{line}: {:?}\n{text}", output.status);
}

/// Starts the commands at once, and waits until all have ended.
fn run_all(start: impl Fn(&str) -> Command) {
    let children = COMMANDS.map(|line| {
        let mut command = start(line);
        (line, command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    });
    for (line, child) in children {
        assert_ended(line, &child.wait_with_output().unwrap());
    }
}

fn message(kind: u8, length: u32, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

#[test]
fn no_command_panics_or_hangs_with_a_rogue_server() {
    let replies = [
        // Lengths that lie: nothing, too short, negative, larger than any frame.
        message(b'D', 0, b""),
        message(b'D', 3, b""),
        message(b'D', u32::MAX, b""),
        message(b'D', 0x7fff_ffff, b"x"),
        // More columns and longer values than there are bytes.
        message(b'D', 6, &[0xff, 0xff]),
        message(b'D', 10, &[0, 1, 0x7f, 0xff, 0xff, 0xff]),
        message(b'D', 10, &[0, 1, 0x80, 0, 0, 0]),
        message(b'T', 6, &[0xff, 0xff]),
        // Errors without fields, without an end, and with bytes that are not text.
        message(b'E', 5, &[0]),
        message(b'E', 8, b"Sxxx"),
        message(b'E', 12, &[b'M', 0xff, 0xfe, 0, b'C', 0x1b, 0, 0]),
        message(b'C', 4, b""),
        message(b'C', 6, &[0xff, 0xff]),
        message(b'Z', 5, b"?"),
        message(b'Z', 5, b"E"),
        // Messages that belong elsewhere.
        message(b'R', 8, &[0, 0, 0, 3]),
        message(b'G', 7, &[0, 0, 0]),
        message(b'H', 7, &[0, 0, 0]),
        message(b'W', 7, &[0, 0, 0]),
        message(b'A', 10, b"\0\0\0\x01x\0"),
        message(b'N', 5, &[0]),
        message(b'v', 12, &[0; 8]),
        message(b'\0', 4, b""),
        message(0xff, 4, b""),
        // Two answers to one question, and a value that is not what was asked for.
        [message(b'Z', 5, b"I"), message(b'Z', 5, b"I")].concat(),
        [message(b'D', 13, b"\0\x01\0\0\0\x03\xff\xff\xff"), message(b'C', 13, b"SELECT 1\0")]
            .concat(),
        b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
    ];
    for reply in replies {
        for closes in [false, true] {
            let reply = reply.clone();
            let server = FakeServer::start(move |_, _| {
                let reply = reply.clone();
                if closes { Reply::RawThenClose(reply) } else { Reply::Raw(reply) }
            })
            .unwrap();
            let url = format!(
                "host={} port={PORT} user=me dbname=test connect_timeout=1",
                server.folder().display()
            );
            run_all(|line| {
                let mut command = command(line);
                command.args(["-d", &url]);
                command
            });
        }
    }
}

#[test]
fn no_command_panics_or_hangs_if_bytes_of_the_server_change() {
    let database = database("harness_bytes");
    database.riops("prepare rows --rows 2000").expect(0);
    let socket = database.state.socket_dir.join(format!(".s.PGSQL.{}", database.state.port));
    for seed in 0..24 {
        let proxy =
            Proxy::start_for(&socket, move |connection| Fault::Mutate(seed * 1000 + connection))
                .unwrap();
        let url = format!(
            "host={} port={PORT} user=postgres dbname=harness_bytes connect_timeout=1",
            proxy.folder().display()
        );
        let lines = [
            "run rows --no-store --batch 10 --update-percent 50 --transactions 100 --warmup 0",
            "run ping --no-store --transactions 50 --warmup 0",
            "doctor",
        ];
        for line in lines {
            let mut command = command(line);
            assert_ended(line, &command.args(["-d", &url]).output().unwrap());
        }
    }
    // No change was lost or applied twice, as far as that is known, and no lock is left.
    let verified = database.riops("verify rows");
    assert!(matches!(verified.code, Some(0 | 3)), "{}", verified.stderr);
    assert!(!verified.stdout.contains("WRONG"), "{}", verified.stdout);
    database.riops("cleanup rows").expect(0);
}

#[test]
fn every_command_ends_in_order_on_signals_at_any_moment() {
    let database = database("harness_signals");
    database.riops("prepare rows --rows 2000").expect(0);
    let lines = [
        "doctor",
        "prepare rows --rows 20000 --recreate",
        "run rows --no-store --batch 10 --update-percent 50 --duration 300ms --warmup 0",
        "verify rows",
        "run load --no-store --rows 20000",
        "cleanup rows",
        "runs list",
    ];
    for (line, signal) in
        lines.iter().flat_map(|line| [(line, "-INT"), (line, "-TERM"), (line, "-HUP")])
    {
        // The moments differ from run to run.
        for rounds in [0, 2_000, 20_000, 1_000_000] {
            let mut command = database.command(line);
            let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            spin(rounds);
            let _ = Command::new("kill").args([signal, &child.id().to_string()]).status();
            let output = child.wait_with_output().unwrap();
            // Before the handler is installed, the signal ends the process.
            if output.status.code().is_some() {
                assert_ended(line, &output);
            }
        }
    }
    // Nothing half made looks whole, and no lock is left.
    database.riops("prepare rows --rows 2000 --recreate").expect(0);
    database.riops("verify rows").expect(0);
}

/// Damages a file in one of 28 ways.
fn damage(way: usize, intact: &[u8]) -> Vec<u8> {
    let mut bytes = intact.to_vec();
    let length = bytes.len();
    match way {
        0 => bytes.clear(),
        1..=6 => bytes.truncate([1, 15, 16, 100, 4096, length - 1][way - 1]),
        // Single bytes of the header and of the first page.
        7..=14 => bytes[[0, 16, 18, 20, 28, 44, 60, 100][way - 7]] ^= 0xff,
        // Whole pages.
        15..=20 => {
            let page = (way - 14) * 4096 % length;
            let end = (page + 4096).min(length);
            bytes[page..end].fill(if way.is_multiple_of(2) { 0 } else { 0xff });
        }
        // Bytes spread over the file.
        21..=26 => (0..length).step_by(97 + way).for_each(|at| bytes[at] ^= 1 << (way - 21)),
        _ => bytes.extend_from_slice(b"more than a database"),
    }
    bytes
}

#[test]
fn no_command_panics_with_a_damaged_store() {
    let database = database("harness_store");
    for _ in 0..2 {
        database.riops("run ping --transactions 20 --warmup 0").expect(0);
    }
    let intact = std::fs::read(&database.store).unwrap();
    let folder = folder("harness-stores");
    for way in 0..28 {
        let path = folder.join(format!("{way}.sqlite"));
        std::fs::write(&path, damage(way, &intact)).unwrap();
        let run_on = |line: &str, store: &Path| {
            let mut command = database.command(line);
            command.env("RIOPS_STORE", store);
            assert_ended(&format!("way {way}: {line}"), &command.output().unwrap());
        };
        for line in [
            "runs list",
            "runs show last",
            "runs history",
            "runs export last",
            "run ping --transactions 5 --warmup 0",
        ] {
            run_on(line, &path);
        }
    }
}

#[test]
fn names_and_settings_of_every_kind_are_used_as_they_are() {
    let admin = database("harness_names");
    for name in ["it's", "a\"b", "x; drop table y", "Ünï cödé", "select", "a\\b", "%s", "{table}"]
    {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        let mut connection = admin.connect();
        connection.execute(&format!("drop database if exists {quoted}")).unwrap();
        connection.execute(&format!("create database {quoted}")).unwrap();
        for setting in
            ["\"user.x\" = 'y'", "search_path = '\"$user\", \"a''b\"'", "statement_timeout = '1h'"]
        {
            connection.execute(&format!("alter database {quoted} set {setting}")).unwrap();
        }
        let value = name.replace('\\', "\\\\").replace('\'', "\\'");
        let state = &admin.state;
        let url = format!(
            "host={} port={} user=postgres dbname='{value}'",
            state.socket_dir.display(),
            state.port
        );
        for line in [
            "run rows --prepare --rows 2000 --batch 10 --transactions 20 --warmup 0 --no-store",
            "verify rows",
            "sweep rows --axis batch=10,20 --repeat 1 --reset restore --transactions 20 --warmup 0",
            "cleanup rows",
        ] {
            let mut command = command(line);
            command.args(["-d", &url]).env("RIOPS_STORE", &admin.store);
            CommandOutput::run(&mut command).expect(0);
        }
        connection.execute(&format!("drop database {quoted}")).unwrap();
    }
}
