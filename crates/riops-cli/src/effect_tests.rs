//! Each option of each workload is set once: it changes the plan, or it is an error, or it says where the run takes place
//! and what is printed and stored.

use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::{ArgAction, Args, Command};
use riops::plan::{Plan, Trust, WorkPlan};

use super::*;
use crate::args::{ChangeOptions, GraphOptions, ResultOptions, TargetOptions, TrustOption};
use crate::settings::parse_words;

/// Options without which a switch is refused.
fn needs_of_switch(long: &str) -> &'static [&'static str] {
    match long {
        "skip-late" => &["--rate=5", "--latency-limit=1ms"],
        "abort-on-threshold" => &["--threshold=p99<1s"],
        "rebalance" => &["--spread=round-robin"],
        "progress" | "debug" | "verbose-errors" | "allow-no-success" | "report-per-command"
        | "failures-detailed" => &["--output=pgbench"],
        "progress-timestamp" => &["--output=pgbench", "--progress"],
        _ => &[],
    }
}

/// A value of an option that is not its default, and further options without which it is refused.
fn sample(workload: &str, arg: &Arg) -> Vec<String> {
    let long = arg.get_long().unwrap_or_default();
    let with = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return [vec![format!("--{long}")], with(needs_of_switch(long))].concat();
    }
    let value: &[&str] = match long {
        "batch-insert-count" => &["3", "--test=multi-value-insert"],
        "num-rows-in-insert" => &["3", "--test=multi-insert"],
        "random-points" => &["3", "--test=random-points"],
        "number-of-ranges" | "delta" => &["3", "--test=random-ranges"],
        "test" => &["read-only"],
        "tag" | "define" | "setting" => &["a=1"],
        "fact" => &["vcpu=8"],
        "probe" | "count" => &["a=select 1"],
        "prometheus" => &["http://127.0.0.1:9"],
        "prometheus-server" => &["a=\"b\"", "--prometheus=http://127.0.0.1:9"],
        "threshold" => &["p99<1s"],
        "percentile" if workload == "cbc" => &["90"],
        "poisson" => &["on", "--rate=5"],
        "rate" => &["5"],
        "total-rows" | "transactions" => &["1000"],
        "max-duration" => &["7s", "--transactions=1000"],
        "on-error" => &["continue"],
        "sampling-rate" => &["0.5", "--log=x"],
        "latency-percentiles" => &["99.9", "--output=pgbench"],
        "aggregate-interval" => &["7", "--log=x"],
        "settle" => &["7s", "--repeat=2"],
        "query-duration" => &["7s", "--query-sessions=2"],
        "distribution" => &["zipfian:0.5"],
        "rand-type" => &["pareto"],
        "nodes" => &["2"],
        "spread" => &["replica"],
        "workers" => &["3", "--sessions=9"],
        "skip-trx" => &["on"],
        "cold" => &["try"],
        "size" if workload == "rows" => &["80kB", "--layout=block"],
        "size" => &["3GB"],
        "dir" => &["/x", "--method=copy-file"],
        "method" => &["copy"],
        "op" => &["update"],
        "field-length" if workload == "point" => &["3", "--op=update"],
        "builtin" => &["select-only"],
        "transactions-per-session" => &["3", "--warmup=0"],
        "for" | "command" => &["7s"],
        _ => &[],
    };
    if let Some((value, needs)) = value.split_first() {
        return [vec![format!("--{long}={value}")], with(needs)].concat();
    }
    let known: Vec<_> =
        arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let default =
        arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    if let Some(value) = known.iter().rev().find(|value| Some(*value) != default.as_ref()) {
        return vec![format!("--{long}={value}")];
    }
    let name = arg.get_value_names().into_iter().flatten().map(clap::builder::Str::as_str).next();
    let value = match name.unwrap_or_default() {
        "N" | "ROWS" | "COUNT" | "KEYS" | "BATCH" | "HZ" | "PORT" | "SECONDS" => "3",
        "TIME" => "7s",
        "SIZE" => "80kB",
        "ON|OFF" => "off",
        "TEXT" | "NAME" | "PREFIX" => "x",
        _ => "7",
    };
    vec![format!("--{long}={value}")]
}

/// A script is read; a time and a command exclude each other; the rows of a script are unknown, which is an error.
const CHECKED_ELSEWHERE: [&str; 4] = ["file", "for", "command", "total-rows"];

/// Options that are not part of a plan: where the run takes place, what is printed and stored.
fn is_of_command(long: &str) -> bool {
    let command = TargetOptions::augment_args(Command::new("run"));
    let command = GraphOptions::augment_args(ResultOptions::augment_args(command));
    let command = TrustOption::augment_args(ChangeOptions::augment_args(command));
    command.get_arguments().any(|arg| arg.get_long() == Some(long)) || long == "session-detail"
}

fn plan(words: &[String]) -> Result<Plan, String> {
    let words: Vec<_> = words.iter().map(OsString::from).collect();
    let arguments = parse_words(&words)?;
    let crate::args::Command::Run(run) = arguments.command else { panic!("no run") };
    let plan = run.workload.unwrap().options().plan().map_err(|error| format!("{error:#}"))?;
    let plan = Plan { trust: Trust(true), ..plan };
    plan.validate().map_err(|error| error.to_string())?;
    // Random unless it is set.
    Ok(Plan {
        seed: if words.iter().any(|word| word.to_string_lossy().contains("seed")) {
            plan.seed
        } else {
            0
        },
        ..plan
    })
}

#[test]
fn each_option_of_each_workload_changes_the_plan_or_is_refused() {
    let run = crate::args::built().find_subcommand("run").unwrap();
    let mut without_effect = Vec::new();
    let mut refused = BTreeSet::new();
    for workload in WorkPlan::executable_names() {
        let base = ["riops", "run", &workload].into_iter();
        // Without a command, there is nothing to observe.
        let base: Vec<String> = match workload.as_str() {
            "observe" => base.chain(["--command=true"]).map(str::to_owned).collect(),
            _ => base.map(str::to_owned).collect(),
        };
        let command = run.find_subcommand(&workload).unwrap();
        let options = command.get_arguments().filter(|arg| {
            settable(arg)
                .is_some_and(|long| !is_of_command(long) && !CHECKED_ELSEWHERE.contains(&long))
                && !arg.is_global_set()
        });
        let plain = plan(&base).unwrap();
        for arg in options {
            let words = sample(&workload, arg);
            let (option, needs) = words.split_first().unwrap();
            let with_needs = [base.clone(), needs.to_vec()].concat();
            let before = if needs.is_empty() { plain.clone() } else { plan(&with_needs).unwrap() };
            match plan(&[with_needs.clone(), vec![option.clone()]].concat()) {
                Ok(after) if after == before => without_effect.push(format!("{workload} {option}")),
                Ok(_) => {}
                Err(error) => {
                    refused.insert(format!(
                        "{workload} {option}: {}",
                        error.lines().next().unwrap_or_default()
                    ));
                }
            }
        }
    }
    assert!(without_effect.is_empty(), "{without_effect:#?}");
    let mut expected = BTreeSet::from([
        "ping --no-verify: --no-verify has no effect: the workload ping has no data that riops verifies".to_owned(),
    ]);
    let without_dataset = ["cbc", "observe", "ping"].map(|name| {
        format!("{name} --vacuum=freeze: --vacuum has no effect: the workload {name} has no dataset of riops")
    });
    expected.extend(without_dataset);
    assert_eq!(refused, expected);
}

/// The error of a command line, with a variable that selects a server and a file.
fn refusal(words: &[&str], server_variable: Option<&'static str>, file: &Values) -> Option<String> {
    let root = crate::args::built().clone().ignore_errors(true);
    let matches = root.try_get_matches_from(words).unwrap();
    let (mut path, mut innermost, mut command) = (Vec::new(), &matches, crate::args::built());
    while let Some((name, inner)) = innermost.subcommand() {
        path.push(name);
        (innermost, command) = (inner, command.find_subcommand(name).unwrap());
    }
    let set = SetOptions {
        path: &path,
        command,
        matches: innermost,
        file,
        server_variable,
        is_cell: false,
    };
    set.require_effect(Origin::Typed).err()
}

/// All commands with an option, as words.
fn commands_with(long: &str, command: &Command, path: &[String]) -> Vec<Vec<String>> {
    let path = [path, &[command.get_name().to_owned()]].concat();
    let has = command.get_arguments().any(|arg| arg.get_long() == Some(long));
    let needed = command.get_positionals().filter(|arg| arg.is_required_set());
    let own = has.then(|| path.iter().cloned().chain(needed.map(|_| "x".to_owned())).collect());
    let inner = command.get_subcommands().flat_map(|inner| commands_with(long, inner, &path));
    own.into_iter().chain(inner).collect()
}

#[test]
fn the_options_of_the_embedded_server_are_refused_by_every_command_with_another_server() {
    let with_database = commands_with("database", crate::args::built(), &[]);
    let commands = commands_with("server-set", crate::args::built(), &[]);
    let commands: Vec<_> =
        commands.into_iter().filter(|words| with_database.contains(words)).collect();
    assert!(commands.len() > 30, "{commands:?}");
    let none = Values::new();
    for words in &commands {
        for long in EMBEDDED {
            let option = format!("--{long}={}", if *long == "server-port" { "1" } else { "a=b" });
            let line = |more: &[&'static str]| {
                let words = words.iter().map(String::as_str).chain([option.as_str()]);
                refusal(&words.chain(more.iter().copied()).collect::<Vec<_>>(), None, &none)
            };
            let expected = format!(
                "--{long} has no effect: --database selects another server than the embedded one"
            );
            assert_eq!(line(&["-d", "x"]), Some(expected), "{words:?}");
            assert_eq!(line(&[]), None, "{words:?}");
            let words: Vec<_> = words.iter().map(String::as_str).chain([option.as_str()]).collect();
            let reason = refusal(&words, Some("PGHOST"), &none).unwrap();
            assert!(reason.contains("PGHOST selects another server"), "{reason}");
        }
    }
}

#[test]
fn options_without_effect_beside_others_are_refused() {
    let none = Values::new();
    for (line, expected) in [
        ("riops run rows --print-histogram --output json", "--print-histogram has no effect"),
        ("riops run ping --metrics-token-file f", "--metrics-token-file has no effect"),
        ("riops run ping --metrics-token x", "--metrics-token has no effect"),
        ("riops run script --failures-detailed", "--failures-detailed has no effect"),
        ("riops observe --for 1s --database-wide", "--database-wide has no effect"),
        (
            "riops run oltp read-only --index-updates 5",
            "--index-updates has no effect on the test read-only",
        ),
        ("riops sweep oltp insert --range-size 5", "--range-size has no effect on the test insert"),
        ("riops doctor --client -d x", "--database has no effect"),
        ("riops doctor --store x", "--store has no effect"),
        ("riops script check --offline -d x f", "--database has no effect"),
        ("riops server stop --server-set a=b", "--server-set has no effect"),
        ("riops sweep --list -d x", "--database has no effect"),
        ("riops sweep --list --trust", "--trust has no effect"),
        ("riops sweep rows --graph x.png", "--graph has no effect"),
        ("riops sweep rows --dry-run -o html=x.html", "--output has no effect"),
        ("riops ab --dry-run -o png=x", "--output has no effect"),
        ("riops sweep ping --dry-run --output csv", "--output has no effect"),
        ("riops run ping --dump-plan -o json=a", "--output has no effect"),
        ("riops run ping --repeat 1 --settle 1s", "--settle has no effect"),
        ("riops run ping --no-verify", "--no-verify has no effect"),
        ("riops runs import f -d x", "--database has no effect"),
        (
            "riops runs import f --from sysbench --pgbench-column-7 lag",
            "--pgbench-column-7 has no effect",
        ),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let reason = refusal(&words, None, &none);
        assert!(
            reason.as_ref().is_some_and(|text| text.starts_with(expected)),
            "{line}: {reason:?}"
        );
        // Without the option that it is about, it is accepted.
        let option = expected.split(' ').next().unwrap();
        let at = words
            .iter()
            .position(|word| {
                *word == option
                    || [("--database", "-d"), ("--output", "-o")].contains(&(option, word))
            })
            .unwrap();
        let takes_value =
            words.get(at + 1).is_some_and(|next| !next.starts_with("--") && *next != "f");
        let mut rest = words.clone();
        rest.drain(at..=at + usize::from(takes_value));
        assert_eq!(refusal(&rest, None, &none), None, "{rest:?}");
    }
}

#[test]
fn a_file_may_set_options_of_other_commands_but_not_of_other_workloads() {
    let file = |long: &str| Values::from([(long.to_owned(), vec!["3".to_owned()])]);
    let refusal_of =
        |line: &str, long| refusal(&line.split(' ').collect::<Vec<_>>(), None, &file(long));
    assert_eq!(
        refusal_of("riops run ping", "batch").as_deref(),
        Some(
            "\"batch\" in the configuration file has no effect: the workload ping has no option --batch"
        )
    );
    for (line, long) in [
        ("riops run rows", "batch"),
        ("riops run rows", "recreate"),
        ("riops run rows", "limit"),
        ("riops run point", "field-length"),
        ("riops prepare load", "op"),
        ("riops runs list", "batch"),
    ] {
        assert_eq!(refusal_of(line, long), None, "{line} {long}");
    }
}

#[test]
fn options_that_have_an_effect_are_accepted() {
    for line in [
        "riops run oltp --print-histogram --output sysbench",
        "riops run rows --print-histogram --output json=a",
        "riops run rows --print-histogram --output png",
        "riops run rows --print-histogram --output pgio",
        "riops run ping --metrics-listen 127.0.0.1:0 --metrics-token 0123456789abcdef",
        "riops run script --failures-detailed --log x",
        "riops run oltp multi-value-insert --batch-insert-count 5",
        "riops run oltp update-index --skip-trx",
        "riops server start --server-set a=b",
        "riops doctor --disk --store x",
    ] {
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(refusal(&words, None, &Values::new()), None, "{line}");
    }
}
