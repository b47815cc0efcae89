//! What is shown while something runs: on standard error, as a bar on a terminal and as lines
//! elsewhere. Results are printed by [`print()`], on standard output.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use riops::dataset::prepare::Progress;
use riops::metrics::Point;
use riops::plan::{Plan, Stop};
use riops::probe::sampler::ProbePoint;
use riops::report;
use riops::units::Span;

/// How often progress is told where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Prints a result. A reader that has gone away is no reason for a complaint, a full disk is.
///
/// # Errors
/// Where the result could not be written.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("the result could not be written"))
        }
        _ => Ok(()),
    }
}

/// Prints an error.
pub(crate) fn error(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "riops: {text}");
}

/// Where and whether to show progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    quiet: bool,
    terminal: bool,
}

impl Ui {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, terminal: std::io::stderr().is_terminal() && !quiet }
    }

    /// Tells the user something that is no result.
    pub(crate) fn notice(self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
    }

    /// Shows the download of the server as a bar, from the spans of the downloading crate: of
    /// those, only the innermost one of the archive knows how far it is. Only a terminal can show
    /// it.
    pub(crate) fn watch_downloads(self) {
        use tracing_subscriber::filter::filter_fn;
        use tracing_subscriber::layer::{Layer, SubscriberExt};
        use tracing_subscriber::util::SubscriberInitExt;
        if self.terminal {
            let style = bar_style("{bar:30} {bytes}/{total_bytes} ({bytes_per_sec}, {eta} left)");
            let archive = filter_fn(|span| {
                span.name() == "get_archive" && span.target().ends_with("maven::repository")
            });
            let layer = tracing_indicatif::IndicatifLayer::new()
                .with_progress_style(style)
                .with_filter(archive);
            let _ = tracing_subscriber::registry().with(layer).try_init();
        }
    }

    fn bar(self, length: u64, template: &str) -> ProgressBar {
        let target =
            if self.terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(length), target);
        bar.set_style(bar_style(template));
        bar
    }
}

fn bar_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// The progress of a preparation.
pub(crate) struct LoadProgress {
    ui: Ui,
    bar: ProgressBar,
    state: Mutex<LoadState>,
}

struct LoadState {
    start: Instant,
    told: Instant,
}

impl LoadProgress {
    pub(crate) fn new(ui: Ui) -> Self {
        let now = Instant::now();
        Self {
            ui,
            bar: ui
                .bar(0, "{msg:10} {bar:30} {human_pos}/{human_len} rows ({per_sec}, {eta} left)"),
            state: Mutex::new(LoadState { start: now, told: now }),
        }
    }

    /// Shows what the library tells.
    pub(crate) fn show(&self, progress: Progress) {
        match progress {
            Progress::Loaded { rows, total } => {
                self.bar.set_message("loading");
                self.bar.set_length(total);
                self.bar.set_position(rows);
                self.tell(rows, total);
            }
            Progress::Finishing => self.step("making the indexes"),
            Progress::Checking => self.step("counting the rows"),
        }
    }

    fn step(&self, text: &str) {
        self.bar.finish_and_clear();
        self.ui.notice(text);
    }

    fn tell(&self, rows: u64, total: u64) {
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        if self.ui.terminal || state.told.elapsed() < LINE_EVERY {
            return;
        }
        state.told = Instant::now();
        let rate = rows as f64 / state.start.elapsed().as_secs_f64();
        self.ui.notice(&format!(
            "loaded {} of {} rows ({} rows/s)",
            report::count(rows),
            report::count(total),
            report::rate(rate)
        ));
    }
}

impl Drop for LoadProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of a statement that runs once: what the server tells of it, and the device's rates.
pub(crate) struct StepProgress {
    ui: Ui,
    bar: ProgressBar,
    name: &'static str,
    /// The database's size before, and by how much it is to grow.
    growth: Option<(u64, u64)>,
    state: Mutex<StepState>,
}

struct StepState {
    told: Instant,
    /// The phase that it is in, and what was done of it when that was first seen.
    phase: String,
    since: (f64, f64),
}

/// Parts of a bar.
const BAR_PARTS: u64 = 1_000;

impl StepProgress {
    pub(crate) fn new(ui: Ui, name: &'static str, growth: Option<(u64, u64)>) -> Self {
        let bar = ui.bar(BAR_PARTS, "{prefix:12} {bar:24} {wide_msg}");
        bar.set_prefix(name);
        bar.tick();
        if !ui.terminal {
            ui.notice(&format!("{name} …"));
        }
        let state = StepState { told: Instant::now(), phase: String::new(), since: (0.0, 0.0) };
        Self { ui, bar, name, growth, state: Mutex::new(state) }
    }

    /// Shows how far it is.
    pub(crate) fn show(&self, point: &ProbePoint) {
        let (phase, share) = self.share(point);
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        if state.phase != phase {
            state.since = (point.t_s, share.unwrap_or(0.0));
            state.phase.clone_from(&phase);
        }
        let mut parts = Vec::new();
        if let Some(share) = share {
            parts.push(report::percent(share));
        }
        if let (Some(read), Some(write)) = (point.read_mb_s, point.write_mb_s) {
            parts.push(format!("{read:.0} MB/s read, {write:.0} MB/s written"));
        }
        // Of the phase that it is in: what comes after it the server does not know.
        let (since_s, since) = state.since;
        if let Some(share) = share.filter(|&share| share > since && share < 1.0) {
            let left = (point.t_s - since_s) * (1.0 - share) / (share - since);
            let left = Duration::try_from_secs_f64(left.ceil()).unwrap_or(Duration::MAX);
            parts.push(format!("{} left", Span(left)));
        }
        parts.push(phase);
        let line = parts.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>();
        let line = line.join(" · ");
        if self.ui.terminal {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a thousand"
            )]
            let position = (share.unwrap_or(0.0) * BAR_PARTS as f64) as u64;
            self.bar.set_position(position);
            self.bar.set_message(line);
            return;
        }
        if state.told.elapsed() >= LINE_EVERY {
            state.told = Instant::now();
            self.ui.notice(&format!("{}: {:.0} s · {line}", self.name, point.t_s));
        }
    }

    /// What is done of all, and which part of it is under way.
    fn share(&self, point: &ProbePoint) -> (String, Option<f64>) {
        let of = |done: u64, total: u64| {
            (total > 0).then(|| (done as f64 / total as f64).clamp(0.0, 1.0))
        };
        match (&point.progress, self.growth, point.database_bytes) {
            (Some(progress), ..) => (progress.phase.clone(), of(progress.done, progress.total)),
            (None, Some((before, growth)), Some(now)) => {
                (String::new(), of(now.saturating_sub(before), growth))
            }
            _ => (String::new(), None),
        }
    }

    /// It has ended.
    pub(crate) fn done(&self, seconds: f64) {
        self.bar.finish_and_clear();
        self.ui.notice(&format!("{:<12} {}", self.name, report::duration_us(seconds * 1e6)));
    }
}

impl Drop for StepProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The progress of a run.
pub(crate) struct RunProgress {
    ui: Ui,
    bar: ProgressBar,
    plan: Plan,
    done: u64,
}

impl RunProgress {
    pub(crate) fn new(ui: Ui, plan: &Plan) -> Self {
        let (length, unit) = match plan.stop {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "tenths of seconds for a bar"
            )]
            Stop::DurationS(seconds) => ((seconds * 10.0) as u64, ""),
            Stop::Transactions(count) => (count, " {human_pos}/{human_len} transactions"),
            Stop::Rows(count) => (count, " {human_pos}/{human_len} rows"),
        };
        let bar = ui.bar(length, &format!("{{bar:20}}{unit} {{wide_msg}}"));
        Self { ui, bar, plan: plan.clone(), done: 0 }
    }
}

impl RunProgress {
    pub(crate) fn connected(&mut self, sessions: usize) {
        let warmup = match self.plan.warmup() {
            Duration::ZERO => String::new(),
            warmup => format!(", warming up for {}", Span(warmup)),
        };
        self.ui.notice(&format!(
            "{sessions} session{} connected{warmup}",
            if sessions == 1 { "" } else { "s" }
        ));
    }

    pub(crate) fn draining(&mut self) {
        self.bar.finish_and_clear();
        self.ui.notice(
            "the measurement is over; waiting up to a minute for transactions that are still under way (Ctrl-C: do not wait)",
        );
    }

    pub(crate) fn measuring(&mut self) {
        self.ui.notice(&match self.plan.stop {
            Stop::DurationS(seconds) => {
                format!("measuring for {}", Span(Duration::from_secs_f64(seconds)))
            }
            Stop::Transactions(count) => format!("measuring {} transactions", report::count(count)),
            Stop::Rows(count) => format!("measuring {} rows", report::count(count)),
        });
        self.bar.tick();
    }

    pub(crate) fn point(&mut self, point: &Point) {
        let line = report::interval_line(&point.clone().into(), &self.plan);
        if !self.ui.terminal {
            return self.ui.notice(&line);
        }
        self.done += match self.plan.stop {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "tenths of seconds for a bar"
            )]
            Stop::DurationS(_) => (point.seconds * 10.0).round() as u64,
            Stop::Transactions(_) => point.transactions,
            Stop::Rows(_) => point.rows,
        };
        self.bar.set_message(line);
        self.bar.set_position(self.done);
    }
}

impl Drop for RunProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
