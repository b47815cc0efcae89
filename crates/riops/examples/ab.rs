//! An A/B test of prepared and simple statements on the server whose address is the argument.
#![expect(clippy::print_stdout, reason = "an example")]

use riops::experiment::Conductor;
use riops::host::Interrupt;
use riops::plan::{Plan, Protocol, Stop, ping::PingRun};
use riops::report::{Lines, experiment, findings_text};
use riops::server::Target;
use riops::store::StoreLocation;
use riops::study::{AbSettings, Experiment, Goal, ServerChoice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = ServerChoice { database: std::env::args().nth(1), ..ServerChoice::default() };
    let plan = |protocol| {
        let (work, stop) = (PingRun::default().into(), Stop::DurationS(0.5));
        Plan { protocol, work, stop, ..Plan::default() }
    };
    let plans = [("prepared", plan(Protocol::Prepared)), ("simple", plan(Protocol::Simple))];
    let mut test = Experiment::of_plans("protocol", plans, &server);
    test.goal = Goal::Ab(AbSettings::default());
    let (store, interrupt) = (StoreLocation::File("example.sqlite".into()), Interrupt::new());
    let select = |choice: &ServerChoice| Target::at(choice.database.as_deref().unwrap_or(""));
    let conductor = Conductor::new(store, &select, &interrupt);
    let (study, _) = conductor.start(test)?;
    let result = experiment::experiment(&experiment::view(&study));
    print!("{}", findings_text(&result, Lines::from(100)));
    Ok(())
}
