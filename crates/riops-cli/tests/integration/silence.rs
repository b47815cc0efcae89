//! Servers that never reply, and servers that never stop.

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use riops_testkit::{FakeServer, PORT, Reply, Request};

use crate::crash::kill;
use crate::fixture::{CommandOutput, command, start_until};

const COMMANDS: [&str; 8] = [
    "doctor",
    "prepare rows --rows 2000",
    "run rows --prepare --rows 2000 --no-store",
    "run ping --no-store",
    "run script -b select-only --no-store",
    "verify rows",
    "cleanup rows",
    "warm rows",
];

fn url(server: &FakeServer) -> String {
    format!("host={} port={PORT} user=me dbname=test connect_timeout=1", server.folder().display())
}

#[test]
fn a_server_that_does_not_reply_ends_every_command_with_the_name_of_the_statement() {
    // The connections that ask whether the server still responds get no answer, either.
    let server = FakeServer::start(|_, request| match request {
        Request::Query(_) | Request::Parse(_) | Request::Execute { .. } => Reply::Silence,
    })
    .unwrap();
    let start = |line: &&str| {
        let mut command = command(line);
        command.args(["-d", &url(&server)]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let children: Vec<_> = COMMANDS.iter().map(start).collect();
    for child in children {
        CommandOutput::from(child.wait_with_output().unwrap())
            .expect(1)
            .stderr_contains("no reply to `");
    }
}

#[test]
fn an_interrupt_ends_a_command_whose_server_never_stops_sending() {
    // Rows and parameters without an end.
    let row = [b"D\0\0\0\x0b\0\x01\0\0\0\x01x".to_vec(), b"S\0\0\0\x08a\0b\0".to_vec()].concat();
    let begun = std::sync::Arc::new(AtomicUsize::new(0));
    let seen = std::sync::Arc::clone(&begun);
    let server = FakeServer::start(move |_, _| {
        seen.fetch_add(1, Ordering::Release);
        Reply::Stream(row.repeat(1000))
    })
    .unwrap();
    for line in COMMANDS {
        begun.store(0, Ordering::Release);
        let mut command = command(line);
        let child = start_until(command.args(["-d", &url(&server)]), "target:");
        while begun.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        kill(child.id(), "-INT");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{line}");
    }
}
