//! Servers and records that send what a terminal obeys: control characters, line breaks, and characters that change the
//! order of the text.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use riops::units::text::is_unprintable;
use serde_json::{Value, json};

use crate::fixture::{CommandOutput, command, folder};

const FORGED: &str = "riops: FORGED";
const HOSTILE: &str = "x\u{1b}[2J\u{9b}1m\u{202e}\u{7f}\nriops: FORGED";
/// The same as it is shown.
const SHOWN: &str = "x\\u{1b}[2J\\u{9b}1m\\u{202e}\\u{7f}\\u{a}riops: FORGED";

/// What the server does with a connection.
#[derive(Clone, Copy)]
enum Then {
    RejectTheConnection,
    RejectStatements,
}

/// A server whose every text is hostile. It ends with the process of the test.
fn server(then: Then) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            // A client that disconnects ends its session.
            std::thread::spawn(move || serve(client.unwrap(), then).unwrap_or_default());
        }
    });
    format!("postgresql://me@127.0.0.1:{port}/db?sslmode=disable")
}

fn message(tag: u8, fields: &[&[u8]]) -> Vec<u8> {
    let body = fields.concat();
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[tag], length.to_be_bytes().as_slice(), &body].concat()
}

/// An error or a notice.
fn report(tag: u8, severity: &str) -> Vec<u8> {
    let field = |letter: char, text: &str| format!("{letter}{text}\0");
    let fields = [('S', severity), ('V', severity), ('C', "XX000"), ('M', HOSTILE), ('D', HOSTILE)];
    let fields: String = fields.iter().map(|(letter, text)| field(*letter, text)).collect();
    message(tag, &[fields.as_bytes(), b"\0"])
}

fn serve(mut client: TcpStream, then: Then) -> std::io::Result<()> {
    let mut buffer = [0; 8192];
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let rest = usize::try_from(u32::from_be_bytes(length)).unwrap() - length.len();
    client.read_exact(&mut buffer[..rest])?;
    let refusal = report(b'E', "FATAL");
    if matches!(then, Then::RejectTheConnection) {
        return client.write_all(&refusal);
    }
    let version = format!("server_version\018{HOSTILE}\0");
    let ready = message(b'Z', &[b"I"]);
    let start = [
        message(b'R', &[&[0; 4]]),
        message(b'S', &[version.as_bytes()]),
        report(b'N', "WARNING"),
        message(b'K', &[&[0; 8]]),
        ready.clone(),
    ];
    client.write_all(&start.concat())?;
    while client.read(&mut buffer)? > 0 {
        client
            .write_all(&[report(b'N', "NOTICE"), report(b'E', "ERROR"), ready.clone()].concat())?;
    }
    Ok(())
}

fn assert_printable(line: &str, text: &str) {
    let raw =
        text.replace("\r\n", "\n").chars().find(|&c| is_unprintable(c) && !"\n\t".contains(c));
    assert_eq!(raw, None, "{line}: {text}");
}

fn assert_harmless(line: &str, ran: &CommandOutput) {
    for text in [&ran.stdout, &ran.stderr] {
        assert_printable(line, text);
        // A line break in a cell of CSV is a part of its value.
        let forged = text.lines().find(|line| line.starts_with(FORGED));
        assert!(line.contains("csv") || forged.is_none(), "{line}: {text}");
    }
}

#[test]
fn texts_of_a_server_are_shown_in_one_line_without_control_characters() {
    let folder = folder("hostile_server");
    let lines = ["doctor", "run ping --transactions 1", "verify rows", "prepare rows", "run rows"];
    for (then, expected) in [
        (Then::RejectTheConnection, "connection rejected by 127.0.0.1"),
        (Then::RejectStatements, "(SQLSTATE XX000)"),
    ] {
        let url = server(then);
        for line in lines {
            let mut command = command(line);
            command.env("RIOPS_DATABASE", &url).env("RIOPS_STORE", folder.join("runs.sqlite"));
            let ran = CommandOutput::run(&mut command).expect(1);
            assert_harmless(line, &ran);
            assert!(ran.stderr.contains(expected), "{line}: {}", ran.stderr);
            assert!(ran.stderr.contains(SHOWN), "{line}: {}", ran.stderr);
        }
        let mut json = command("doctor --output json");
        let ran = CommandOutput::run(json.env("RIOPS_DATABASE", &url)).expect(1);
        assert_harmless("json", &ran);
        assert_eq!(ran.json()["error"]["exit_code"], 1);
    }
}

/// Texts of a record that are not words of riops. `riops/tests/hostile.rs` has all others, form by form.
const TEXTS: [&str; 15] = [
    "server_version",
    "version_text",
    "address",
    "database",
    "encryption",
    "pooler",
    "shared_buffers",
    "host",
    "kernel",
    "cpu_model",
    "virtualization",
    "riops_version",
    "found",
    "name",
    "text",
];

fn poison(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::String(text) if TEXTS.contains(&key.as_str()) => text.push_str(HOSTILE),
                    other => poison(other),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(poison),
        _ => {}
    }
}

/// A record whose texts are hostile.
fn hostile_record(id: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../riops-model/tests/records/rows.json");
    let mut record: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    record["id"] = id.into();
    record["verdict"]["warnings"] = json!([{ "kind": "foreign_cpu", "text": "busy: " }]);
    poison(&mut record);
    // An import refuses control characters in labels and tags.
    record["label"] = "x FORGED".into();
    record["tags"] = json!({ "group": "g" });
    record.to_string()
}

#[test]
fn colors_mark_verdicts_and_come_from_no_value() {
    let folder = folder("colors");
    let run = |line: &str, variables: &[&str]| {
        let mut command = command(line);
        command.env("RIOPS_STORE", folder.join("runs.sqlite"));
        command.envs(variables.iter().map(|name| (name, "1")));
        CommandOutput::run(&mut command).expect(0).stdout
    };
    let record = hostile_record("01890000-0000-7000-8000-0000000000aa");
    let record = record.replace("[2J", "[31m");
    std::fs::write(folder.join("run.json"), record).unwrap();
    let mut import = command("runs import run.json");
    import.env("RIOPS_STORE", folder.join("runs.sqlite")).current_dir(&folder);
    CommandOutput::run(&mut import).expect(0);
    let show = |variables: &[&str]| run("runs show last", variables);
    assert_printable("in a pipe", &show(&[]));
    assert_printable("NO_COLOR", &show(&["CLICOLOR_FORCE", "NO_COLOR"]));
    let colored = show(&["CLICOLOR_FORCE"]);
    assert!(colored.contains("  valid        \u{1b}[32myes: "), "{colored}");
    assert!(colored.contains("\\u{1b}[31m"), "{colored}");
    let known = ["\u{1b}[32m", "\u{1b}[33m", "\u{1b}[0m"];
    for other in ["runs list", "runs list --output csv", "report last -o markdown"] {
        assert_printable(other, &run(other, &["CLICOLOR_FORCE"]));
    }
    assert_printable("forced", &known.iter().fold(colored, |text, code| text.replace(code, "")));
}

#[test]
fn no_command_shows_the_control_characters_of_a_stored_record() {
    let folder = folder("hostile_record");
    let run = |line: &str| {
        let mut command = command(line);
        command.env("RIOPS_STORE", folder.join("runs.sqlite")).current_dir(&folder);
        let ran = CommandOutput::run(&mut command);
        assert_harmless(line, &ran);
        ran
    };
    for id in ["01890000-0000-7000-8000-0000000000aa", "01890000-0000-7000-8000-0000000000bb"] {
        std::fs::write(folder.join("run.json"), hostile_record(id)).unwrap();
        run("runs import run.json").expect(0);
    }
    let id = "01890000-0000-7000-8000-0000000000aa";
    assert!(run("runs show last").expect(0).stdout.contains(SHOWN));
    for form in ["text", "json", "pgio"] {
        run(&format!("runs show last --output {form}")).expect(0);
    }
    for form in ["text", "json", "csv"] {
        let all = run(&format!("runs list --output {form}")).expect(0);
        assert!(all.stdout.contains("FORGED"), "{}", all.stdout);
        run(&format!("runs list --stages --output {form}")).expect(0);
    }
    for form in ["text", "json", "markdown"] {
        run(&format!("compare {id} last --output {form}"));
    }
    run("runs history --output text");
    run("runs history --output json");
    run("report last -o markdown").expect(0);
    run("runs tag last more=1").expect(0);
    for format in ["json", "csv", "openmetrics"] {
        run(&format!("runs export last -o {format}")).expect(0);
        run(&format!("runs export last -o {format}=out")).expect(0);
        let written = std::fs::read_to_string(folder.join("out")).unwrap();
        let written = CommandOutput { code: None, stdout: written, stderr: String::new() };
        assert_harmless(format, &written);
    }
    run("runs rm last --yes").expect(0);
}

#[test]
fn messages_about_arguments_lose_their_control_characters() {
    for argument in ["--col\u{1b}[31mor", "\u{9b}31m", "--batch=\u{202e}1"] {
        let mut command = command("run rows");
        let ran = CommandOutput::run(command.arg(argument)).expect(2);
        assert_harmless(argument, &ran);
        // clap removes the sequences of terminals itself.
        let is_shown = ran.stderr.contains("\\u{") || argument.contains('\u{1b}');
        assert!(is_shown, "{}", ran.stderr);
    }
}

#[test]
fn the_id_of_an_experiment_of_a_foreign_store_is_no_path() {
    let folder = folder("hostile-id");
    let store = folder.join("stores/runs.sqlite");
    std::fs::create_dir(folder.join("stores")).unwrap();
    let riops = |line: &str| {
        let mut command = command(line);
        CommandOutput::run(command.args(["--store"]).arg(&store))
    };
    let database = crate::fixture::database("hostile_id");
    let line = "sweep ping --axis sessions=1,2 --repeat 1 --warmup 0 --duration 50ms -d";
    riops(&format!("{line} {}", database.url)).expect(0);
    let project = folder.join("project");
    std::fs::create_dir(&project).unwrap();
    for contents in ["[package]", ""] {
        std::fs::write(project.join("Cargo.lock"), contents).unwrap();
        let raw = rusqlite::Connection::open(&store).unwrap();
        raw.execute("update experiments set id = '../../project/Cargo'", ()).unwrap();
        let refused = riops("experiments rm last --yes");
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert_eq!(std::fs::read_to_string(project.join("Cargo.lock")).unwrap(), contents);
        riops("experiments list").expect(1).stderr_contains("../../project/Cargo");
    }
}
