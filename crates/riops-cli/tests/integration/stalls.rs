//! Stalls without an error, caused by another session: they are named, and the transactions that wait are in the percentiles.

use serde_json::Value;

use crate::crash::kill;
use crate::fixture::{CommandOutput, database, start_until};

#[test]
fn a_lock_of_another_session_is_a_pause_without_an_error() {
    let database = database("stalls_closed");
    database.riops("prepare point --rows 1000").expect(0);
    let line = "run point -c 2 --duration 1h --warmup 0 --interval 100ms --output json";
    let child = start_until(&mut database.command(line), " s  ");
    let mut session = database.connect();
    session.execute("begin; lock table riops.test_table; select pg_sleep(1); commit").unwrap();
    kill(child.id(), "-INT");
    let record = CommandOutput::from(child.wait_with_output().unwrap()).expect(130).json();
    let stage = &record["stages"][0];
    assert_eq!(stage["errors"], Value::Array(Vec::new()));
    assert!(stage["longest_pause_s"].as_f64() > Some(0.9), "{}", stage["longest_pause_s"]);
    let warnings = record["verdict"]["warnings"].as_array().unwrap();
    let outage = warnings.iter().find(|warning| warning["kind"] == "outage").unwrap();
    assert!(outage["text"].as_str().unwrap().contains("without an error"), "{outage}");
    // Who held the lock, found through pg_blocking_pids.
    let blocker = &stage["probes"]["blockers"][0];
    assert_eq!((&blocker["is_own"], &blocker["state"]), (&false.into(), &"active".into()));
    let text = database.riops("runs show last").expect(0).stdout;
    let name = blocker["name"].as_str().unwrap();
    let expected = format!("for locks of other sessions: {name} (active)");
    assert!(text.contains(&expected), "{expected}: {text}");
}

#[test]
fn each_step_of_a_profile_has_an_account_of_its_transactions() {
    let database = database("profile");
    database.riops("prepare point --rows 1000").expect(0);
    let line = "run point -c 2 -j 2 --rate 200:500ms,0..400:500ms,0:200ms,300:200ms --warmup 0";
    let record = database.riops(&format!("{line} --output json")).expect(0).json();
    let steps = record["stages"][0]["steps"].as_array().unwrap();
    let numbers = |field: &str| -> Vec<u64> {
        steps.iter().map(|step| step[field].as_u64().unwrap_or(0)).collect()
    };
    assert_eq!(numbers("due"), [100, 100, 0, 60]);
    let fields = ["answered", "failed", "skipped", "unanswered", "not_started"];
    for (position, due) in numbers("due").into_iter().enumerate() {
        let sum: u64 = fields.iter().map(|field| numbers(field)[position]).sum();
        assert_eq!(sum, due, "{}", steps[position]);
    }
    let text = database.riops("runs show last").expect(0).stdout;
    assert!(text.contains("0 to 400/s for 500ms"), "{text}");
    assert!(!text.contains("no transaction succeeded for"), "nothing was due: {text}");
    for (rate, error) in [
        ("200:1s -t 5", "the steps of --rate take 1s"),
        ("200:1s,x", "\"x\" is not a step of a profile"),
        ("0:1s", "--rate must be greater than 0"),
    ] {
        let refused = database.riops(&format!("run point --rate {rate}")).expect(2);
        assert!(refused.stderr.contains(error), "{}", refused.stderr);
    }
}

#[test]
fn transactions_that_wait_at_the_end_of_a_rate_are_lower_bounds_of_the_percentiles() {
    let database = database("stalls_open");
    database.riops("prepare point --rows 1000").expect(0);
    let line = "run point -c 2 -j 2 --rate 500 --duration 4s --warmup 0 --interval 100ms \
                --threshold p99<1us --threshold max<3000s --output json";
    let child = start_until(&mut database.command(line), " s  ");
    // Until after the end of the measurement.
    let hold = "begin; lock table riops.test_table; select pg_sleep(5); commit";
    database.connect().execute(hold).unwrap();
    let ran = CommandOutput::from(child.wait_with_output().unwrap());
    let record = ran.expect(99).json();
    let stage = &record["stages"][0];
    let schedule = &stage["schedule"];
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let missing = count(&schedule["waiting"]) + count(&schedule["unanswered"]);
    assert_eq!(count(&schedule["intended"]), 2_000);
    assert_eq!(count(&stage["transactions"]) + missing, 2_000, "{schedule}");
    assert!(missing > 0, "{schedule}");
    let response = &stage["response_us"];
    assert!(response["lower_bound_from"].is_number(), "{response}");
    let thresholds = record["thresholds"].as_array().unwrap();
    // The longest one may take more than an hour.
    let of_max = (&thresholds[1]["held"], &thresholds[1]["at_least"]);
    assert_eq!(of_max, (&false.into(), &true.into()));
    assert_eq!(thresholds[0]["held"], false);
    let text = database.riops("runs show last").expect(0).stdout;
    assert!(text.contains("max ≥ ") && text.contains("UNDECIDED: max<3000s"), "{text}");
    assert!(text.contains("rate         NOT reached"), "{text}");
}
