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
    let (_title, facts) = answer.split_once("\n\n").unwrap();
    assert!(facts.lines().count() <= 12 - 3, "{short}");
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
    assert!(last.contains("sweep ping"), "{last}");
}
