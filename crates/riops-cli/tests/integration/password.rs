//! The password prompt on a terminal.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::fixture::{CommandOutput, binary, command, data_home, database, program, tcp_url};

/// The URL of a role of the database that needs a password, without the password.
fn url_of(database: &str, role: &str) -> String {
    let url = tcp_url(database);
    let (_, place) = url.split_once('@').unwrap();
    format!("postgresql://{role}@{place}")
}

/// Runs riops in a pseudo-terminal, and types the line at the password prompt.
fn run_on_terminal(script: &std::path::Path, line: &str, typed: &str) -> String {
    let data = data_home().display();
    let inner = format!("XDG_DATA_HOME={data} {} {line}", binary().display());
    let mut child = Command::new(script)
        .args(["--quiet", "--return", "--command", &inner, "/dev/null"])
        .env_remove("PGPASSWORD")
        .env("PGPASSFILE", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = String::new();
    let mut out = child.stdout.take().unwrap();
    let mut byte = [0];
    while std::io::Read::read(&mut out, &mut byte).is_ok_and(|length| length == 1) {
        output.push(char::from(byte[0]));
        if output.ends_with("Password for user ask_me: ") {
            child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
        }
    }
    child.wait().unwrap();
    output
}

#[test]
fn a_missing_password_is_asked_for_on_a_terminal_and_is_an_error_elsewhere() {
    let database = database("asked");
    database
        .connect()
        .execute("create role ask_me login superuser password 'open sesame'")
        .unwrap();
    let url = url_of("asked", "ask_me");
    let line = format!("prepare rows --rows 100 -d {url}");
    let mut piped = command(&line);
    piped.stdin(Stdio::null()).env("PGPASSFILE", "/nonexistent");
    CommandOutput::run(&mut piped).expect(1).stderr_contains("set PGPASSWORD");
    let Some(script) = program("script") else {
        return;
    };
    let output = run_on_terminal(&script, &line, "open sesame\n");
    assert!(output.contains("prepared 100 rows"), "{output}");
    assert!(!output.contains("open sesame"), "{output}");
    let output = run_on_terminal(&script, &format!("verify rows -d {url}"), "wrong\n");
    assert!(output.contains("check the user name and the password"), "{output}");
    let output = run_on_terminal(&script, &format!("verify rows -d {url}"), "\u{3}");
    assert!(output.contains("riops: interrupted"), "{output}");
}
