#![no_main]
//! Scripts of pgbench: parses and executes them. The input is a script, a zero byte, and the replies of the server and of
//! the shell as text.

#[path = "support/workload.rs"]
mod workload;

use libfuzzer_sys::fuzz_target;
use riops::plan::{Plan, Protocol, ScriptRun, ScriptSource};
use riops::server::Dialect;
use riops_script::evaluate::Context;
use riops_script::random::Random;
use riops_script::{Action, Names, Variables, parse};

/// Evaluates every expression of the script, also those that a run does not reach.
fn evaluate(text: &str) {
    let mut names = Names::default();
    let script = match parse("fuzz.sql", text, &mut names) {
        Ok(script) => script,
        Err(diagnostics) => {
            assert!(diagnostics.iter().all(|diagnostic| !diagnostic.to_string().is_empty()));
            return;
        }
    };
    let _ = script.pipeline_errors();
    let (mut variables, mut random) = (Variables::new(&names), Random::new(7));
    let mut sql = Vec::new();
    for command in &script.commands {
        match &command.action {
            Action::Set(_, expression)
            | Action::If { condition: expression, .. }
            | Action::ElseIf { condition: expression, .. } => {
                let mut context =
                    Context { variables: &mut variables, random: &mut random, debug: &mut |_| {} };
                match (context.evaluate(expression), &command.action) {
                    (Ok(value), Action::Set(slot, _)) => variables.set(*slot, value),
                    (Ok(_), _) => {}
                    (Err(error), _) => assert!(!error.describe(&names, &variables).is_empty()),
                }
            }
            Action::Sql(statement) => statement.append_simple(&variables, &mut sql),
            _ => {}
        }
    }
}

fuzz_target!(|input: &str| {
    let (text, reply) = input.split_once('\0').unwrap_or((input, ""));
    evaluate(text);
    let source =
        ScriptSource { name: "fuzz.sql".to_owned(), weight: 1, text: Some(text.to_owned()) };
    let run = ScriptRun { scripts: vec![source], allow_shell: true, ..ScriptRun::default() };
    for protocol in [Protocol::Prepared, Protocol::Extended, Protocol::Simple] {
        let plan = Plan { work: run.clone().into(), protocol, ..Plan::default() };
        if plan.validate().is_ok() {
            let _ = workload::build_all(&plan, Dialect::from_version("18.6"), reply);
        }
    }
});
