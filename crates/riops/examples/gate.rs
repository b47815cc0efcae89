//! A gate: fails if the second plan is slower than the first one, on the server whose address is the argument.
#![expect(clippy::print_stdout, reason = "an example")]

use riops::experiment::{Conductor, GateRules};
use riops::host::Interrupt;
use riops::plan::{Plan, Stop, ping::PingRun};
use riops::server::Target;
use riops::store::StoreLocation;
use riops::study::{AbSettings, Experiment, GateVerdict, Goal, ServerChoice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = ServerChoice { database: std::env::args().nth(1), ..ServerChoice::default() };
    let (work, stop) = (PingRun::default().into(), Stop::DurationS(0.5));
    let plan = Plan { work, stop, ..Plan::default() };
    let mut test = Experiment::of_plans("ping", [("base", plan.clone()), ("head", plan)], &server);
    test.goal = Goal::Ab(AbSettings { blocks_max: 4, one_sided: true, ..AbSettings::default() });
    let rules = GateRules { effect: test.effect, error: 0.05, limit_s: None, continues: false };
    let (store, interrupt) = (StoreLocation::File("example.sqlite".into()), Interrupt::new());
    let select = |choice: &ServerChoice| Target::at(choice.database.as_deref().unwrap_or(""));
    let conductor = Conductor::new(store, &select, &interrupt);
    let gated = conductor.gate(["base", "head"].map(str::to_owned), vec![test], &rules)?;
    println!("{}", gated.view.verdict.as_str());
    std::process::exit(i32::from(gated.view.verdict == GateVerdict::Slower));
}
