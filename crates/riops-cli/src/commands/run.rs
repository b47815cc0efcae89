//! `riops run`: executes a plan from options or a file, and stores and prints the record.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use riops::host::files::{TEXT_BYTES_MAX, text_limited};
use riops::plan::{Plan, PreparePolicy, Trust};
use riops::record::{Events, Record};
use riops::report::{self, Rendered, Repetition};
use riops::run;
use riops::server::Target;
use riops::session::{Repeats, Session, worst_exit_code};
use riops::units::text::json_text;

use super::files::{draw, open_graph};
use crate::args::run::{CommandOptions, RunWorkload};
use crate::args::{self, PlanOptions, ResultOptions};
use crate::failure::{INTERRUPTED, UsageError, refuse};
use crate::fleet;
use crate::measure::{Forms, Runner, StoredRuns, as_in_form, exit_code_in};
use crate::output::{OpenFile, detail};
use crate::screen::{self, Streaming};
use crate::target;
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

/// Runs the plan of a file or of the stored run `before`.
pub(crate) fn run_existing_plan(
    mut plan: Plan,
    options: &PlanOptions,
    before: Option<&Record>,
    ui: Ui,
) -> Ran {
    let PlanOptions { trust, changes, prepare, keep, graph_options, target } = options;
    plan.trust = Trust(trust.trust);
    plan.keep_samples |= graph_options.graph.is_some();
    if prepare.policy() == PreparePolicy::IfMissing {
        plan.prepare = PreparePolicy::IfMissing;
    }
    let changes = changes.changes(*trust);
    let options =
        CommandOptions { changes, before, ..CommandOptions::new(keep, graph_options, target) };
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
    let CommandOptions { keep, graph_options, before, session_detail, .. } = options;
    plan.validate()?;
    if keep.dump_plan {
        crate::ui::print(&json_text(plan)?)?;
        return Ok((ExitCode::SUCCESS, None));
    }
    let repeats = keep.repeat.repeats(graph_options, &keep.answer.outputs)?;
    // Opened before the run, so that a file that cannot be written fails before the measurement.
    let forms = Forms::open(&keep.answer.outputs, detail(keep.answer.details, ui), plan, ui)?;
    let form = forms.shown;
    let graph = open_graph(graph_options)?;
    let session_detail = session_detail.map(OpenFile::open).transpose()?;
    let membership = fleet::membership(&keep.fleet, &keep.store, ui)?;
    if membership.is_some() && (keep.no_store || keep.repeat.repeat.is_some()) {
        return refuse("--fleet cannot be combined with --no-store and --repeat");
    }
    let runs = StoredRuns::open(keep, membership.as_ref(), ui)?;
    // Checked before any server is started: the limit on open files may be too low for the plan.
    if membership.is_none() {
        run::allow_sessions(plan.sessions, plan.workers)?;
    }
    let target = Target { changes: options.changes.clone(), ..target::open(options.target, ui)? };
    if let Some(before) = before.filter(|_| options.target.database.is_none()) {
        target::announce_another_server(&target, before, ui);
    }
    // Several runs are printed one after the other.
    let stream = form.stream.filter(|_| repeats.is_none());
    let intervals = !keep.no_intervals;
    let streaming = stream.map(|stream| Arc::new(Streaming::new(stream, intervals)));
    let runner = Runner {
        session: Session {
            store: runs.store.as_ref(),
            location: runs.location.clone(),
            history: &runs,
            note: runs.note.clone(),
            membership,
            events: events(keep, streaming.clone(), ui)?,
            interrupt: ui.interrupt,
        },
        forms,
        streaming,
        intervals,
        graph_options,
        target: &target,
        ui,
    };
    if let Some(repeats) = repeats {
        let result = repeat(plan, repeats, &runner);
        drop(runner);
        target.close()?;
        return result;
    }
    let (record, code, published) = runner.measure(plan, &as_in_form)?;
    drop(runner);
    let drawn = graph.map_or(Ok(()), |file| draw(file, graph_options, &record, ui));
    let detailed = |file: OpenFile| file.write(report::pgio_sessions(&record).as_bytes(), ui);
    let written = drawn.and(session_detail.map_or(Ok(()), detailed));
    target.close()?;
    published?;
    let code = ExitCode::from(code.unwrap_or_else(|| exit_code_in(form, &record)));
    with_files(code, written, ui).map(|code| (code, Some(record)))
}

/// Exit code and last record.
type Ran = Result<(ExitCode, Option<Record>)>;

/// Runs the plan several times, and prints each run and the summary. The worst run gives the exit code.
fn repeat(plan: &Plan, repeats: Repeats, runner: &Runner<'_>) -> Ran {
    let is_text = runner.forms.shown.name == "text";
    let mut repeated = runner.session.repeat(plan, repeats, |position, plan| {
        let (record, _, published) = runner.measure(plan, &|form, record, extras| {
            if is_text {
                let repetition = Repetition { ordinal: position, count: repeats.count };
                Ok(Rendered::Data(report::repeat_line(record, repetition, extras)))
            } else {
                (form.print)(record, extras)
            }
        })?;
        published.map(|()| record)
    })?;
    let (records, store) = (&repeated.records, &runner.ui.given().store);
    let summary = crate::ui::text(&report::repeats_document(records, &repeated.tag, store));
    if is_text {
        crate::ui::print(&summary)?;
    } else {
        runner.ui.lines(summary.trim_end());
    }
    let is_interrupted = runner.ui.interrupt.is_requested();
    let code = if is_interrupted { INTERRUPTED } else { worst_exit_code(records) };
    Ok((ExitCode::from(code), repeated.records.pop()))
}

/// Returns the receiver of the events of a run: screen, programs, and the form that is printed while it is in progress.
fn events(keep: &ResultOptions, streaming: Option<Arc<Streaming>>, ui: Ui) -> Result<Events> {
    let hides_intervals = keep.live.interval_json || keep.no_intervals || streaming.is_some();
    let shown = screen::shown(if hides_intervals { ui.without_intervals() } else { ui });
    let programs = screen::programs(&keep.live, ui)?;
    Ok(Events::new(move |event| {
        shown.send(event);
        if let Some(streaming) = &streaming {
            streaming.event(event);
        }
        programs.send(event);
    }))
}

/// Returns the exit code of a run, or the error of writing its files. If both failed, the exit code takes precedence.
fn with_files(code: ExitCode, written: Result<()>, ui: Ui) -> Result<ExitCode> {
    match written {
        Err(error) if code == ExitCode::SUCCESS => return Err(error),
        Err(error) => ui.notice(&format!("{error:#}")),
        Ok(()) => {}
    }
    Ok(code)
}
