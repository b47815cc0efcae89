//! Compares one, two and four sessions on the server whose address is the argument, and stores all runs.
#![expect(clippy::print_stdout, reason = "an example")]

use riops::experiment::Conductor;
use riops::host::Interrupt;
use riops::plan::{Plan, Stop, ping::PingRun};
use riops::report::{Lines, experiment, findings_text};
use riops::server::Target;
use riops::store::StoreLocation;
use riops::study::{Experiment, ServerChoice};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = ServerChoice { database: std::env::args().nth(1), ..ServerChoice::default() };
    let plan = |sessions| {
        let (work, stop) = (PingRun::default().into(), Stop::DurationS(0.5));
        Plan { sessions, work, stop, ..Plan::default() }
    };
    let plans = [("1 session", plan(1)), ("2 sessions", plan(2)), ("4 sessions", plan(4))];
    let (store, interrupt) = (StoreLocation::File("example.sqlite".into()), Interrupt::new());
    let select = |choice: &ServerChoice| Target::at(choice.database.as_deref().unwrap_or(""));
    let conductor = Conductor::new(store, &select, &interrupt);
    let (study, _) = conductor.start(Experiment::of_plans("sessions", plans, &server))?;
    let result = experiment::experiment(&experiment::view(&study));
    print!("{}", findings_text(&result, Lines::from(100)));
    Ok(())
}
