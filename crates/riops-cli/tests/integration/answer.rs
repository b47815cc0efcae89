//! The answer of a run: what is printed without --details.

use crate::fixture::{CommandOutput, Database, database};

/// Runs a command as a user does.
fn run_as_user(database: &Database, line: &str) -> CommandOutput {
    CommandOutput::run(database.command(line).env_remove("RIOPS_DETAILS"))
}

#[test]
fn a_run_ends_with_at_most_twelve_lines_and_details_on_request() {
    let database = database("answer");
    let run = "run rows --rows 1000 --batch 5 -c 2 --transactions 200 --warmup 0 --prepare";
    let short = run_as_user(&database, run).expect(0).stdout;
    // The address of the test's server makes the title and the next command long.
    let (answer, _command) = short.split_once("\n  try next").unwrap();
    let (_title, facts) = answer.split_once("\n  workload").unwrap();
    assert!(facts.lines().count() <= 12 - 2, "{short}");
    assert!(facts.contains("random row reads, 5 rows per statement · 2 sessions, "), "{short}");
    for part in ["RIOPS", "latency", "bottleneck", "valid", "stored", "try next"] {
        assert!(short.contains(&format!("\n  {part}")), "{part}: {short}");
    }
    assert!(!short.contains("\n  access path"), "{short}");
    assert!(answer.lines().all(|line| line.chars().count() <= 80), "{short}");
    let last = run_as_user(&database, "last").expect(0).stdout;
    let figure = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("  RIOPS")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!(figure(&last), figure(&short));
    for line in ["last --details", "runs show"] {
        let text = run_as_user(&database, line).expect(0).stdout;
        assert!(text.contains("\n  access path") && text.contains(&figure(&short)), "{text}");
    }
    let details = run_as_user(&database, &format!("{run} --details")).expect(0).stdout;
    assert!(details.contains("\n  access path"), "{details}");
    for line in ["run ping --details --output json", "run ping --details --repeat 2"] {
        let refused = run_as_user(&database, line).expect(2).stderr;
        assert!(refused.contains("--details has no effect"), "{refused}");
    }
}

#[test]
fn a_quiet_run_prints_bad_news_and_last_shows_the_whole_experiment() {
    let database = database("answer_quiet");
    let run = "run ping -c 1 --transactions 20 --warmup 0 --threshold max<1us";
    let noted = run_as_user(&database, run).expect(99).stdout;
    assert!(noted.contains("BREACHED"), "{noted}");
    let quiet = run_as_user(&database, &format!("{run} --quiet")).expect(99).stdout;
    assert!(quiet.contains("BREACHED") && quiet.contains("latency"), "{quiet}");
    let sweep = "sweep ping --axis sessions=1,2 --repeat 1 --transactions 20 --warmup 0";
    run_as_user(&database, sweep).expect(0);
    let last = run_as_user(&database, "last").expect(0).stdout;
    assert!(last.contains("riops sweep · ping"), "{last}");
}

#[test]
fn each_command_prints_its_answer_and_everything_on_request() {
    let database = database("answers");
    let run = "ping --transactions 50 --warmup 0";
    let sweep = format!("sweep {run} --axis sessions=1,2 --repeat 2");
    for label in ["base", "head"] {
        let line = format!("run {run} -c 1 --repeat 4 --settle 0s --label {label}");
        run_as_user(&database, &line).expect(0);
    }
    // Everything begins with other words than the answer has.
    for (line, cells, more) in [
        (&*sweep, 3, "What differs"),
        ("last", 3, "What differs"),
        ("compare base head", 0, "cost per transaction"),
        ("runs history --label head", 0, "started (UTC)"),
        ("doctor", 0, "  settings "),
    ] {
        let answer = run_as_user(&database, line).expect(0).stdout;
        assert!(answer.lines().count() <= 12 + cells, "{line}: {answer}");
        assert!(!answer.contains(more), "{line}: {answer}");
        let details = run_as_user(&database, &format!("{line} --details")).expect(0).stdout;
        assert!(details.contains(more), "{line}: {details}");
    }
    run_as_user(&database, "doctor --all").expect(0).stdout_contains("  settings ");
    for line in ["doctor --client --details", "sweep --list --details"] {
        run_as_user(&database, line).expect(2).stderr_contains("--details has no effect");
    }
    run_as_user(&database, &format!("{sweep} -c 1"))
        .expect(2)
        .stderr_contains("--sessions is an axis of this experiment: omit the option");
    run_as_user(&database, &format!("{sweep} --dry-run --details"))
        .expect(2)
        .stderr_contains("--dry-run has no result");
}

#[test]
fn the_next_command_of_a_run_repeats_its_options() {
    let database = database("answer_next");
    let line =
        "run rows --rows 1000 --batch 5 -c 2 --transactions 200 --warmup 0 --prepare --label a";
    let text = run_as_user(&database, line).expect(0).stdout;
    let (_, next) = text.split_once("\n  try next").unwrap();
    let words = next.replace("\\\n", " ");
    let command = words.split("  (").next().unwrap();
    // Beside other load, the next step is to repeat the run, or to measure the device.
    let is_other = ["runs rerun last", "doctor --disk"].iter().any(|other| command.contains(other));
    let options = ["--rows=1000", "--batch=5", "--transactions=200"];
    assert!(is_other || options.iter().all(|word| command.contains(word)), "{text}");
    assert!(command.contains("-d "), "{text}");
    assert!(!command.contains("--label") && !command.contains('…'), "{text}");
}

#[test]
fn a_word_that_is_almost_right_gets_the_right_one() {
    let database = database("answer_hints");
    run_as_user(&database, "run ping -c 1 --transactions 5 --warmup 0 --label baseline").expect(0);
    for (line, text) in [
        ("rows", "'riops run rows' measures this workload"),
        ("oltp_read_write", "'riops run oltp read-write' measures this workload"),
        ("run oltp oltp_raed_write", "did you mean oltp_read_write?"),
        ("explain bottelneck", "did you mean bottleneck?"),
        ("run ping --threshold p99<1ms,tps>5", "each condition needs its own --threshold"),
    ] {
        run_as_user(&database, line).expect(2).stderr_contains(text);
    }
    for (label, text) in [
        ("basline", "has the label, tag or id \"basline\": did you mean \"baseline\"?"),
        ("nightly", "the newest labels are \"baseline\""),
    ] {
        run_as_user(&database, &format!("compare {label} last")).expect(1).stderr_contains(text);
    }
    run_as_user(&database, "observe -- nosuch").expect(127).stderr_contains("nosuch");
    run_as_user(&database, "explain LIOPS").expect(0).stdout_contains("  example: ");
    let first = run_as_user(&database, "").expect(2).stderr;
    assert!(first.lines().count() <= 15 && first.contains("riops run rows"), "{first}");
}
