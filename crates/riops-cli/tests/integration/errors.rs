//! Errors with `--output json`.

use serde_json::{Value, json};

use crate::fixture::{CommandOutput, command, database, folder};

fn error_of(line: &str) -> (Option<i32>, Value) {
    let mut command = command(line);
    command.env("RIOPS_STORE", folder("json-errors").join("runs.sqlite"));
    let ran = CommandOutput::run(&mut command);
    assert!(ran.stderr.starts_with("riops: "), "{line}: {}", ran.stderr);
    (ran.code, ran.json()["error"].clone())
}

#[test]
fn an_error_is_one_json_object_on_standard_output() {
    let (code, error) = error_of("run rows -q --output json -d postgresql://me@127.0.0.1:1/x");
    assert_eq!((code, &error["exit_code"], &error["kind"]), (Some(1), &json!(1), &json!("failed")));
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("cannot connect to 127.0.0.1:1"), "{message}");
    let (code, error) = error_of("runs show ffffffff --output json");
    assert_eq!((code, &error["kind"]), (Some(1), &json!("failed")));
}

#[test]
fn usage_errors_of_options_files_and_plans_are_json_too() {
    for (line, message) in [
        ("run rows --output json --sessions many", "invalid value 'many'"),
        ("run rows --output json --nonsense", "unexpected argument '--nonsense'"),
        ("run rows --output json --sessions 0", "--sessions must be at least 1"),
        ("run rows --output=json --config /nonexistent", "cannot read configuration file"),
        ("doctor --output json --duration 5s", "--duration requires --client"),
    ] {
        let (code, error) = error_of(line);
        assert_eq!((code, &error["kind"]), (Some(2), &json!("usage")), "{line}: {error}");
        assert!(error["message"].as_str().unwrap().starts_with(message), "{line}: {error}");
        assert_eq!(error["exit_code"], 2, "{line}");
    }
}

#[test]
fn the_form_may_come_from_the_environment_or_a_file_and_a_hint_is_separate() {
    let mut typed = command("run rows --sessions many");
    let ran = CommandOutput::run(typed.env("RIOPS_OUTPUT", "json")).expect(2);
    assert_eq!(ran.json()["error"]["kind"], "usage");
    let file = folder("json-config").join("riops.toml");
    std::fs::write(&file, "output = \"json\"\n").unwrap();
    let mut unknown = command(&format!("run rows --config {}", file.display()));
    let ran = CommandOutput::run(unknown.env("RIOPS_SESIONS", "4")).expect(2);
    let error = &ran.json()["error"];
    assert_eq!(error["message"], "unrecognized environment variable \"RIOPS_SESIONS\"");
    assert_eq!(error["hint"], "did you mean RIOPS_SESSIONS?");
}

#[test]
fn text_errors_leave_standard_output_empty_and_a_record_is_printed_alone() {
    let mut refused = command("run rows --no-store -d postgresql://me@127.0.0.1:1/x");
    let ran = CommandOutput::run(&mut refused).expect(1);
    assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    let database = database("json_record");
    database.riops("prepare rows --rows 1000").expect(0);
    let line = "run rows --transactions 50 --warmup 0 --batch 10 --threshold tps>1e9 --output json";
    let ran = database.riops(line).expect(99);
    assert!(ran.json().get("error").is_none() && ran.json()["status"] == "done");
}
