//! `observe`: runs a command, or waits for a time, and measures everything that riops measures around a stage.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, getpgrp, getpid, kill_process, waitpid};
use rustix::termios::tcgetpgrp;

use super::active::ActiveRun;
use super::conductor::{FinishedStage, Runner};
use super::error::RunError;
use crate::engine::Hooks;
use crate::host::Interrupt;
use crate::host::process::{self, Stat};
use crate::probe::cpu::reaped_cpu_s;
use crate::probe::database::DatabaseProbe;
use crate::probe::queries::OnValues;
use crate::run::parts::{MeasuredObservation, Part};
use crate::server::{Connection, Feature};
use riops_model::plan::{ObserveRun, Plan, PointLength, Stop};
use riops_model::record::{Events, Point, RunEvent};
use riops_model::units::format::short_id;
use riops_model::units::secret::redacted;
use riops_model::units::{Span, nearest_integer};

/// How often an interruption is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A run of `observe`.
pub(super) struct Observe(pub(super) ObserveRun);

impl Observe {
    fn observe(&self, active: &mut ActiveRun<'_>) -> Result<MeasuredObservation, RunError> {
        let run = &self.0;
        let (points, received) = sync_channel(64);
        let on_values: OnValues = Arc::new(move |t_s, values| {
            // Values that are not shown in time are left out.
            let _ = points.try_send((t_s, values.first().copied().flatten()));
        });
        let mut queries = active.query_probe(&run.counts).with_values(on_values);
        // The command may take hours.
        queries.try_each(&run.counts).map_err(RunError::Unsuitable)?;
        let server_before = server_start(&mut active.control);
        let id = active.id.to_string();
        let application = format!("riops observed {}", short_id(&id));
        let own = (!run.watches_database()).then_some(application.as_str());
        // Without a count, there are no intervals to show.
        let on_point = if run.counts.is_empty() {
            Hooks::default().on_point()
        } else {
            active.hooks.events.send(&RunEvent::Stage { name: "observe".to_owned() });
            active.hooks.on_point()
        };
        let mut sampler = active.observing_sampler(own, on_point)?;
        let mut probe = active.machine_probe(&[])?;
        if active.nodes.allowed().len() == 1 && active.control.dialect().has(Feature::Catalogs) {
            let is_dedicated = !active.environment.is_transaction_pooled();
            let mut database = DatabaseProbe::new(&mut active.control, &[])?;
            // The sessions of a pooler do not end.
            if !run.command.is_empty() && is_dedicated {
                database.observed = Some(application.clone());
            }
            probe.database = Some(database.with_all_statements(is_dedicated)?);
        }
        (probe.sampler, probe.queries) = (Some(&mut sampler), Some(&mut queries));
        (probe.perf, probe.instructions) = (active.perf.as_mut(), active.instructions.as_mut());
        probe.open();
        probe.start();
        let orphans = (!run.command.is_empty()).then(Orphans::adopt);
        let cpu_before_s = reaped_cpu_s();
        let start = Instant::now();
        let mut shown = Intervals::new(received, !run.counts.is_empty(), &active.plan);
        let ended = match active.plan.stop {
            Stop::DurationS(seconds) => {
                let time = Span::of_seconds(seconds).0;
                shown.pause(time, active.interrupt, &active.hooks.events);
                Ok(None)
            }
            Stop::Transactions(_) | Stop::Rows(_) => spawn(run, &application)
                .and_then(|child| shown.wait(child, active.interrupt, &active.hooks.events))
                .map(Some),
        };
        let seconds = start.elapsed().as_secs_f64();
        let left_behind = orphans.map(Orphans::release).unwrap_or_default();
        probe.end();
        probe.close(&[]);
        let series = shown.finish();
        let usage = probe.usage();
        drop(probe);
        let status = ended?;
        Ok(MeasuredObservation {
            left_behind,
            restarted: has_restarted(active, server_before),
            seconds,
            status,
            interrupted: active.interrupt.is_requested(),
            command_cpu_s: cpu_before_s.zip(reaped_cpu_s()).map(|(before, after)| after - before),
            counts: run.counts.len(),
            series,
            usage,
        })
    }
}

/// Starts the command. It inherits standard input, output and error, the process group and the environment, with
/// PGAPPNAME unless it is set: its sessions can then be distinguished from others.
fn spawn(run: &ObserveRun, application: &str) -> Result<Child, RunError> {
    let [program, arguments @ ..] = run.command.words() else {
        return Err(RunError::Unsuitable("there is no command to observe".to_owned()));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    if std::env::var_os("PGAPPNAME").is_none() {
        command.env("PGAPPNAME", application);
    }
    let failure = |source| RunError::Command { command: redacted(program), source };
    command.spawn().map_err(failure)
}

/// Whether the server has another start than `before`. The connections do not survive it.
fn has_restarted(active: &mut ActiveRun<'_>, before: Option<String>) -> bool {
    let after = server_start(&mut active.control).or_else(|| {
        let new = Connection::open(&active.server.conninfo, active.interrupt);
        server_start(&mut new.ok()?)
    });
    before.zip(after).is_some_and(|(before, after)| before != after)
}

/// Returns when the server started, if it has this function.
fn server_start(connection: &mut Connection) -> Option<String> {
    connection.query_value("select pg_catalog.pg_postmaster_start_time()").ok()?
}

/// Makes riops the parent of the processes of the command whose own parent ends, and releases them again.
struct Orphans {
    others: BTreeSet<i32>,
}

impl Orphans {
    fn adopt() -> Self {
        adopt_orphans(Some(getpid()));
        Self { others: children().map(|(id, _)| id).collect() }
    }

    /// Returns the names of the processes that still run.
    fn release(self) -> Vec<String> {
        adopt_orphans(None);
        let orphans = children().filter(|(id, _)| !self.others.contains(id));
        let (ended, running): (Vec<_>, Vec<_>) = orphans.partition(|(id, _)| has_ended(*id));
        for (id, _) in ended {
            // Their CPU time belongs to the command.
            let _ = waitpid(Pid::from_raw(id), WaitOptions::NOHANG);
        }
        running.into_iter().map(|(_, name)| name).collect()
    }
}

/// Sets or removes the parent of orphans (prctl(2), `PR_SET_CHILD_SUBREAPER`). If that fails, no process is known to be left behind.
#[cfg(target_os = "linux")]
fn adopt_orphans(parent: Option<Pid>) {
    let _ = rustix::process::set_child_subreaper(parent);
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans(_: Option<Pid>) {}

/// The child processes of riops with their names.
fn children() -> impl Iterator<Item = (i32, String)> {
    let own = getpid().as_raw_nonzero().get();
    let child = move |id| Some((id, Stat::read(id).filter(|stat| stat.parent == own)?.name));
    process::ids(Path::new("/proc")).filter_map(child)
}

/// Whether a process has ended and only waits for its parent: it has no command line any more.
fn has_ended(id: i32) -> bool {
    process::read(id, "cmdline").is_none_or(|line| line.is_empty())
}

/// The values of the main count over time.
struct Intervals {
    received: Receiver<(f64, Option<f64>)>,
    has_count: bool,
    last: Option<(f64, f64)>,
    length: PointLength,
    /// Number of intervals that the last point of the series covers.
    in_last: usize,
    series: Vec<Point>,
}

impl Intervals {
    fn new(received: Receiver<(f64, Option<f64>)>, has_count: bool, plan: &Plan) -> Self {
        let length = plan.point_length();
        Self { received, has_count, last: None, length, in_last: 0, series: Vec::new() }
    }

    /// Shows the intervals that have ended.
    fn show(&mut self, events: &Events) {
        while let Ok((t_s, value)) = self.received.try_recv() {
            if let Some(point) = self.point(t_s, value) {
                events.send(&RunEvent::Point(Box::new(point.clone())));
                self.store(point);
            }
        }
    }

    fn store(&mut self, mut point: Point) {
        let length = self.length.after(self.series.len().saturating_sub(1));
        if length > 1 {
            point.cover(&point.clone());
        }
        match self.series.last_mut() {
            Some(last) if self.in_last < length => {
                last.cover(&point);
                last.t_s = point.t_s;
                last.seconds += point.seconds;
                last.transactions += point.transactions;
                self.in_last += 1;
            }
            _ => {
                self.series.push(point);
                self.in_last = 1;
            }
        }
    }

    fn point(&mut self, t_s: f64, value: Option<f64>) -> Option<Point> {
        let value = value.filter(|_| self.has_count)?;
        let before = self.last.replace((t_s, value));
        let (before_s, before) = before?;
        let transactions = nearest_integer(value - before);
        let seconds = t_s - before_s;
        (seconds > 0.0).then(|| Point { t_s, seconds, transactions, ..Point::default() })
    }

    fn pause(&mut self, time: Duration, interrupt: &Interrupt, events: &Events) {
        let end = Instant::now() + time;
        while !interrupt.is_requested() && Instant::now() < end {
            let rest = end.saturating_duration_since(Instant::now());
            let _ = interrupt.pause(rest.min(POLL_INTERVAL));
            self.show(events);
        }
    }

    /// Waits for the command. Signals that only riops got are passed on to it.
    fn wait(
        &mut self,
        mut child: Child,
        interrupt: &Interrupt,
        events: &Events,
    ) -> Result<ExitStatus, RunError> {
        let process = Pid::from_child(&child);
        let (sender, ended) = sync_channel(1);
        // In a thread, to notice the end at once.
        let waiting = std::thread::spawn(move || {
            let _ = sender.try_send(child.wait());
        });
        let mut is_passed = false;
        let status = loop {
            match ended.recv_timeout(POLL_INTERVAL) {
                Ok(status) => break status.map_err(|error| error.to_string()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(error) => break Err(error.to_string()),
            }
            self.show(events);
            if interrupt.is_requested() && !is_passed {
                is_passed = true;
                if let Some(signal) = forwarded_signal(interrupt.signal()) {
                    let _ = kill_process(process, signal);
                }
            }
        };
        let _ = waiting.join();
        // The process that started riops may ignore the signal SIGCHLD: the kernel then forgets how its children ended.
        status.map_err(|error| {
            RunError::Unsuitable(format!("cannot read the exit status of the command: {error}"))
        })
    }

    /// Takes the values that were read at the end.
    fn finish(mut self) -> Vec<Point> {
        self.show(&Events::ignored());
        self.series
    }
}

/// The signal for the command: none if the terminal has sent it to all processes of the group.
fn forwarded_signal(signal: Option<i32>) -> Option<Signal> {
    let signal = signal.and_then(Signal::from_named_raw).unwrap_or(Signal::TERM);
    let is_foreground = tcgetpgrp(std::io::stderr()).is_ok_and(|group| group == getpgrp())
        || tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == getpgrp());
    (signal != Signal::INT || !is_foreground).then_some(signal)
}

impl Runner for Observe {
    fn begin(&mut self, _: &mut ActiveRun<'_>) -> Result<usize, RunError> {
        Ok(1)
    }

    fn stage(&mut self, _: usize, active: &mut ActiveRun<'_>) -> Result<FinishedStage, RunError> {
        let measured = self.observe(active)?;
        Ok(FinishedStage::new(Part::Observed(Box::new(measured))))
    }
}
