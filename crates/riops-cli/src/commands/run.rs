//! `riops run`: executes a plan from options or a file, and stores and prints the record.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use riops::fleet::{Fleet, Role};
use riops::host::files::{TEXT_BYTES_MAX, text_limited};
use riops::plan::{Plan, PreparePolicy, Trust};
use riops::record::Record;
use riops::units::text::json_text;
use riops::{report, run};

use super::files::{FileOfRun, draw, open_graph};
use super::repeat::{Ran, Repeats};
use crate::args::run::{CommandOptions, RunWorkload};
use crate::args::{self, PlanOptions};
use crate::failure::{UsageError, refuse};
use crate::fleet::Membership;
use crate::live::Live;
use crate::measure::{Runner, StoredRuns, as_in_form, exit_code_in};
use crate::target::Target;
use crate::ui::Ui;

/// Maximum size of a plan, which contains its scripts.
const PLAN_BYTES_MAX: u64 = 4 * TEXT_BYTES_MAX;

/// Runs the plan of the options or of `--plan`.
pub(crate) fn run(command: &args::Run, ui: Ui) -> Result<ExitCode> {
    match (&command.workload, &command.plan) {
        (Some(workload), _) => run_workload(workload.options(), ui),
        (None, Some(file)) => {
            let plan = read_plan(file)?;
            run_existing_plan(plan, &command.again, None, ui).map(|(code, _)| code)
        }
        (None, None) => {
            let text =
                "nothing to run: specify a workload (see riops run --help) or a plan (--plan FILE)";
            refuse(text)
        }
    }
}

/// Runs the plan of the options of a workload.
pub(crate) fn run_workload(workload: &dyn RunWorkload, ui: Ui) -> Result<ExitCode> {
    let plan = Plan { trust: Trust(true), ..workload.plan()? };
    if let Some(notice) = workload.notice() {
        ui.notice(&notice);
    }
    perform(&plan, &workload.options(), ui).map(|(code, _)| code)
}

/// Runs the plan of a file, or that of the stored run `before`.
pub(crate) fn run_existing_plan(
    mut plan: Plan,
    options: &PlanOptions,
    before: Option<&Record>,
    ui: Ui,
) -> Ran {
    let PlanOptions { trust, prepare, keep, graph_options, target } = options;
    plan.trust = Trust(trust.trust);
    plan.keep_samples |= graph_options.graph.is_some();
    if prepare.policy() == PreparePolicy::IfMissing {
        plan.prepare = PreparePolicy::IfMissing;
    }
    let options = CommandOptions { before, ..CommandOptions::new(keep, graph_options, target) };
    perform(&plan, &options, ui)
}

/// Reads a plan from a file.
fn read_plan(file: &Path) -> Result<Plan> {
    let text = text_limited(file, PLAN_BYTES_MAX)
        .map_err(|error| UsageError(format!("cannot read the plan {}: {error}", file.display())))?;
    Plan::from_json(&text)
        .map_err(|error| UsageError(format!("plan {}: {error}", file.display())).into())
}

/// Opens the store and the server, runs the plan, and stores and prints the record: once, or with `--repeat`
/// several times.
fn perform(plan: &Plan, options: &CommandOptions<'_>, ui: Ui) -> Ran {
    let CommandOptions { keep, graph_options, target: target_options, before, session_detail } =
        options;
    plan.validate()?;
    if keep.dump_plan {
        crate::ui::print(&json_text(plan)?)?;
        return Ok((ExitCode::SUCCESS, None));
    }
    let form = report::form(&keep.output.output, plan)?;
    let repeats = Repeats::of(&keep.repeat, graph_options)?;
    // Opened before the run, so that a file that cannot be written fails before the measurement.
    let graph = open_graph(graph_options)?;
    let session_detail =
        session_detail.map(|path| FileOfRun::open("session-detail", path)).transpose()?;
    let membership = Membership::of(&keep.fleet, &keep.store, ui)?;
    if membership.is_some() && (keep.no_store || keep.repeat.repeat.is_some()) {
        return refuse("--fleet cannot be combined with --no-store and --repeat");
    }
    let runs = StoredRuns::open(keep, membership.as_ref(), ui)?;
    // Checked before any server is started: the limit on open files may be too low for the plan.
    if membership.is_none() {
        run::allow_sessions(plan.sessions, plan.workers)?;
    }
    let target = Target::open(target_options, ui)?;
    if let Some(before) = before.filter(|_| target_options.database.is_none()) {
        target.announce_another_server(before, ui);
    }
    let join = |own: Membership| own.join(plan, &target.server(), Role::Member, ui);
    let fleet = membership.map(join).transpose()?;
    let of_agent = fleet.as_ref().map(Fleet::plan).transpose()?;
    let plan = of_agent.as_ref().unwrap_or(plan);
    // The first agent publishes the run of all.
    let live = Live::open(&keep.live, runs.feed().filter(|_| plan.is_first()), ui)?;
    // Several runs are printed one after the other.
    let stream = form.stream.filter(|_| repeats.is_none() && plan.is_first());
    // The first agent shows those of all.
    let hides_intervals =
        keep.live.interval_json || keep.no_intervals || stream.is_some() || !plan.is_first();
    let screen_ui = if hides_intervals { ui.without_intervals() } else { ui };
    let mut runner = Runner {
        form,
        stream,
        intervals: !keep.no_intervals,
        graph_options,
        runs: &runs,
        target: &target,
        live,
        fleet,
        screen_ui,
        ui,
        code: None,
    };
    if let Some(repeats) = repeats {
        let result = repeats.run(plan, &mut runner);
        target.close()?;
        return result;
    }
    let (record, published) = runner.measure(plan, &as_in_form)?;
    let code = runner.code;
    drop(runner);
    let drawn = graph.map_or(Ok(()), |file| draw(file, graph_options, &record, ui));
    let detailed = |file: FileOfRun| file.write(report::pgio_sessions(&record).as_bytes());
    let written = drawn.and(session_detail.map_or(Ok(()), detailed));
    target.close()?;
    published?;
    let code = code.unwrap_or_else(|| ExitCode::from(exit_code_in(form, &record)));
    with_files(code, written, ui).map(|code| (code, Some(record)))
}

/// Returns the exit code of a run whose files were written or not: that of the run takes precedence.
fn with_files(code: ExitCode, written: Result<()>, ui: Ui) -> Result<ExitCode> {
    match written {
        Err(error) if code == ExitCode::SUCCESS => return Err(error),
        Err(error) => ui.notice(&format!("{error:#}")),
        Ok(()) => {}
    }
    Ok(code)
}
