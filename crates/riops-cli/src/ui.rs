//! Progress and notices on standard error: bars on a terminal, lines elsewhere. Results go to standard output
//! by [`print()`].

use std::borrow::Cow;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use riops::host::Interrupt;
use riops::plan::{Plan, Stop};
use riops::record::{Point, ProbePoint};
use riops::report::{self, Document, Lines, LiveView};
use riops::units::Span;
use riops::units::format::{count, duration_us, number_of, percent, rate};
use riops::units::secret::redacted;
use riops::units::text::{json, lines, one_line};
use terminal_size::{Height, Width, terminal_size_of};

use crate::bar_terminal::{BarTerminal, ECHO_COLUMNS};
use crate::hints::Given;
use crate::standard_output;

/// How often progress is printed if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// No text is laid out for fewer columns.
const COLUMNS_MIN: usize = 40;
/// Indentation of the further lines of a check.
const CHECK_INDENT: usize = 7;
/// Indentation of the further lines of a message.
const MESSAGE_INDENT: usize = 2;

/// Columns of a line on standard output: of the terminal, or `COLUMNS`; unlimited in a pipe or file, whose
/// readers may search for any part of a line.
pub(crate) fn output_columns() -> usize {
    let terminal = terminal_size_of(std::io::stdout()).map(|(Width(columns), _)| columns.into());
    let variable = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(variable).map_or(usize::MAX, |columns: usize| columns.max(COLUMNS_MIN))
}

/// The lines of a text on standard output.
pub(crate) fn output_lines() -> Lines {
    Lines { colors: has_colors(&std::io::stdout()), ..Lines::from(output_columns()) }
}

/// A document as text for standard output.
pub(crate) fn text(document: &Document) -> String {
    report::document_text(document, output_columns())
}

/// Columns of a line on standard error; unlimited if it is not a terminal.
fn message_columns() -> usize {
    let terminal = terminal_size_of(std::io::stderr());
    terminal.map_or(usize::MAX, |(Width(columns), _)| usize::from(columns).max(COLUMNS_MIN))
}

/// Breaks a result into lines that fit standard output.
pub(crate) fn wrapped(text: &str) -> String {
    report::wrapped(text, CHECK_INDENT, output_columns()) + "\n"
}

fn message(text: &str) {
    let text = report::wrapped(text, MESSAGE_INDENT, message_columns());
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Whether a result was printed: a reader of JSON expects one value.
static HAS_PRINTED: AtomicBool = AtomicBool::new(false);

/// Whether results are discarded, as a drop-in command line may require.
static ARE_DISCARDED: AtomicBool = AtomicBool::new(false);

/// Discards all results from now on.
pub(crate) fn discard_results() {
    ARE_DISCARDED.store(true, Ordering::Relaxed);
}

/// Returns whether a result was printed.
pub(crate) fn has_printed() -> bool {
    HAS_PRINTED.load(Ordering::Relaxed)
}

/// Prints a result, with escapes for characters that a terminal obeys. A closed pipe is not an error, because the reader
/// has seen enough.
///
/// # Errors
/// If standard output cannot be written, for example because the disk is full.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(lines(text).as_bytes())
}

/// Prints a document as text, which may have colors.
///
/// # Errors
/// See [`print()`].
pub(crate) fn print_colored(text: &str) -> anyhow::Result<()> {
    print_bytes(report::keep_colors(text, |part| lines(part).into_owned()).as_bytes())
}

/// Prints the result of a command, which succeeded.
///
/// # Errors
/// See [`print()`].
pub(crate) fn print_done(text: &str) -> anyhow::Result<ExitCode> {
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints an HTML page or the help of clap as it is.
///
/// # Errors
/// See [`print()`].
pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    HAS_PRINTED.store(true, Ordering::Relaxed);
    if ARE_DISCARDED.load(Ordering::Relaxed) {
        return Ok(());
    }
    if standard_output::was_closed() {
        anyhow::bail!("cannot write the result: standard output is closed");
    }
    // The standard library does not report that standard output cannot be written at all (EBADF).
    let written = std::io::stdout()
        .as_fd()
        .try_clone_to_owned()
        .and_then(|output| File::from(output).write_all(bytes));
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(anyhow::Error::from(error).context("cannot write the result"))
        }
        _ => Ok(()),
    }
}

/// Prints an error without secrets: a word or a line of a file that it repeats may be an address with a password.
pub(crate) fn error(text: &str) {
    message(&format!("riops: {}", redacted(text)));
}

/// Indents the lines after the first that are not indented. Values of a server or a file may contain line breaks: no line
/// of them must look like a message of riops.
pub(crate) fn indented(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| {
        let indent = if line.starts_with(' ') { "" } else { "  " };
        format!("{text}\n{indent}{line}")
    })
}

/// Prints a line of JSON for programs to standard error, also with --quiet.
pub(crate) fn json_line(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", json(line));
}

/// Prints a text to standard error in its own lines, also with --quiet.
pub(crate) fn print_error(text: &str) {
    let _ = std::io::stderr().lock().write_all(lines(text).as_bytes());
}

/// Prints an error of clap, in colors if there is a terminal.
pub(crate) fn error_of_clap(plain: &str, colored: &str) {
    let text = in_colors(has_colors(&std::io::stderr()), plain, colored);
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Prints the help or the version, in colors if there is a terminal.
///
/// # Errors
/// See [`print()`].
pub(crate) fn help_of_clap(plain: &str, colored: &str) -> anyhow::Result<()> {
    print_bytes(in_colors(has_colors(&std::io::stdout()), plain, colored).as_bytes())
}

/// Whether a text has colors: in a terminal, or with `CLICOLOR_FORCE`, and not with `NO_COLOR`.
///
/// Sources: no-color.org, bixense.com/clicolors.
fn has_colors(output: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    set("NO_COLOR").is_none() && (is_forced || output.is_terminal())
}

/// Returns the text, in colors if wanted. A text with characters that a terminal obeys loses its colors.
fn in_colors<'a>(has_colors: bool, plain: &'a str, colored: &'a str) -> Cow<'a, str> {
    match lines(plain) {
        Cow::Borrowed(_) if has_colors => colored.into(),
        escaped => escaped,
    }
}

/// Where and whether progress is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    quiet: bool,
    terminal: bool,
    /// Whether the intervals of a run are shown.
    intervals: bool,
    given: &'static Given,
    /// Requested by Ctrl-C.
    pub(crate) interrupt: &'static Interrupt,
}

impl Ui {
    pub(crate) fn new(quiet: bool, given: &'static Given) -> Self {
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let interrupt = Box::leak(Box::new(Interrupt::new()));
        Self { quiet, terminal, intervals: true, given, interrupt }
    }

    /// The same without bars and interval lines, whose place `--interval-json` takes.
    pub(crate) fn without_intervals(self) -> Self {
        Self { terminal: false, intervals: false, ..self }
    }

    /// Whether only results and errors are printed.
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// The options that commands in messages repeat.
    pub(crate) fn given(self) -> &'static Given {
        self.given
    }

    /// Prints a message that is not a result, in one line.
    pub(crate) fn notice(self, text: &str) {
        if !self.quiet {
            message(&one_line(&self.given.complete(text)));
        }
    }

    /// Prints a message in its own lines.
    pub(crate) fn lines(self, text: &str) {
        if !self.quiet {
            message(&self.given.complete(text));
        }
    }

    /// Prints an error that does not end riops, also with --quiet.
    pub(crate) fn error(self, text: &str) {
        error(&indented(&self.given.complete(text)));
    }

    /// Shows the download of the server as a bar, if there is a terminal. The progress comes from the spans
    /// of the downloading crate; only the innermost span of the archive has it.
    pub(crate) fn watch_downloads(self) {
        use tracing_subscriber::filter::filter_fn;
        use tracing_subscriber::layer::{Layer, SubscriberExt};
        use tracing_subscriber::util::SubscriberInitExt;
        if self.terminal {
            let style = bar_style("{bar:20} {bytes}/{total_bytes}, {eta} left");
            let archive = filter_fn(|span| {
                span.name() == "get_archive" && span.target().ends_with("maven::repository")
            });
            let layer = tracing_indicatif::IndicatifLayer::new()
                .with_progress_style(style)
                .with_filter(archive);
            let _ = tracing_subscriber::registry().with(layer).try_init();
        }
    }

    fn draw_target(self) -> ProgressDrawTarget {
        if !self.terminal {
            return ProgressDrawTarget::hidden();
        }
        ProgressDrawTarget::term_like(Box::new(BarTerminal::stderr()))
    }

    fn bar(self, length: u64) -> Bar {
        let bar = ProgressBar::with_draw_target(Some(length), self.draw_target());
        let columns = if message_columns() < WIDE_COLUMNS { NARROW_BAR } else { WIDE_BAR };
        bar.set_style(bar_style(&format!("[{{bar:{columns}}}] {{msg}}")));
        Bar { bar, columns }
    }
}

/// Lines of a terminal that are not for a view: a lower terminal has only the line of the bar.
const ROWS_BESIDE_VIEW: usize = 4;

/// Lines of the terminal on standard error.
fn rows() -> usize {
    terminal_size_of(std::io::stderr()).map_or(0, |(_, Height(rows))| rows.into())
}

/// Columns of a bar, in a terminal with fewer columns than `WIDE_COLUMNS` and in others.
const NARROW_BAR: usize = 10;
const WIDE_BAR: usize = 20;
const WIDE_COLUMNS: usize = 100;

fn bar_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// A progress bar with a message that fits into the rest of its line.
struct Bar {
    bar: ProgressBar,
    columns: usize,
}

impl Bar {
    /// Columns for the message: without the bar, the gap, the last column and the columns that [`BarTerminal`] reserves.
    fn message_columns(&self) -> usize {
        message_columns().saturating_sub(self.columns + 4 + ECHO_COLUMNS)
    }

    fn show(&self, position: u64, message: &str) {
        self.show_lines(position, &one_line(message));
    }

    /// Shows the parts of a message that fit.
    fn show_parts(&self, position: u64, parts: &[(u8, String)]) {
        self.show(position, &report::fit(parts, self.message_columns()));
    }

    /// Shows a message whose further lines are below the bar.
    fn show_lines(&self, position: u64, message: &str) {
        self.bar.set_message(message.to_owned());
        self.bar.set_position(position);
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The progress of work on several runs.
pub(crate) struct CountProgress {
    bar: Bar,
    runs: usize,
}

impl CountProgress {
    pub(crate) fn new(ui: Ui, runs: usize) -> Self {
        Self { bar: ui.bar(runs as u64), runs }
    }

    pub(crate) fn show(&self, done: &str, runs: usize) {
        self.bar.show(runs as u64, &format!("{done} {runs} of {} runs", self.runs));
    }
}

/// The progress of a preparation.
pub(crate) struct LoadProgress {
    ui: Ui,
    bar: Bar,
    start: Instant,
    printed: Mutex<Instant>,
}

impl LoadProgress {
    pub(crate) fn new(ui: Ui) -> Self {
        let start = Instant::now();
        Self { ui, bar: ui.bar(0), start, printed: Mutex::new(start) }
    }

    pub(crate) fn step(&self, text: &str) {
        self.bar.clear();
        self.ui.notice(text);
    }

    pub(crate) fn loaded(&self, rows: u64, total: u64) {
        let Ok(mut printed) = self.printed.lock() else {
            return;
        };
        let per_s = rows as f64 / self.start.elapsed().as_secs_f64();
        let done = format!("loaded {} of {} rows", count(rows), count(total));
        let rate = format!("{} rows/s", rate(per_s));
        if self.ui.terminal {
            let left_s = (total.saturating_sub(rows) as f64 / per_s).ceil();
            let left =
                Duration::try_from_secs_f64(left_s).map(|left| format!("{} left", Span(left)));
            self.bar.bar.set_length(total);
            self.bar.show_parts(rows, &[(0, done), (2, rate), (1, left.unwrap_or_default())]);
        } else if printed.elapsed() >= LINE_EVERY {
            *printed = Instant::now();
            self.ui.notice(&format!("{done} ({rate})"));
        }
    }
}

/// The progress of a statement that runs once, as the server reports it, and the rates of the device.
pub(crate) struct StepProgress {
    ui: Ui,
    bar: Bar,
    name: String,
    state: Mutex<StepState>,
}

struct StepState {
    printed: Instant,
    /// The current phase, and its time and share when it was first reported.
    phase: String,
    since: (f64, f64),
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bar is rough")]
fn parts_of_bar(parts: f64) -> u64 {
    parts as u64
}

/// Parts of a bar.
const BAR_PARTS: u64 = 1_000;

impl StepProgress {
    pub(crate) fn new(ui: Ui, name: &str) -> Self {
        let bar = ui.bar(BAR_PARTS);
        bar.show(0, name);
        bar.bar.tick();
        if !ui.terminal {
            ui.notice(&format!("{name} …"));
        }
        let state = StepState { printed: Instant::now(), phase: String::new(), since: (0.0, 0.0) };
        Self { ui, bar, name: name.to_owned(), state: Mutex::new(state) }
    }

    /// Shows the progress: the share that is done.
    pub(crate) fn show(&self, point: &ProbePoint, share: Option<f64>) {
        let phase = point.progress.as_ref().map_or("", |progress| progress.phase.as_str());
        let Ok(mut state) = self.state.lock() else {
            return;
        };
        if state.phase != phase {
            state.since = (point.t_s, share.unwrap_or(0.0));
            phase.clone_into(&mut state.phase);
        }
        let mut parts = vec![(0, self.name.clone())];
        if let Some(share) = share {
            parts.push((1, percent(share)));
        }
        if let (Some(read), Some(write)) = (point.read_mb_s, point.write_mb_s) {
            parts.push((3, format!("{read:.0} MB/s read, {write:.0} MB/s written")));
        }
        // Only for the current phase: the server does not report the following ones.
        let (since_s, since) = state.since;
        if let Some(share) = share.filter(|&share| share > since && share < 1.0) {
            let left = (point.t_s - since_s) * (1.0 - share) / (share - since);
            let left = Duration::try_from_secs_f64(left.ceil()).unwrap_or(Duration::MAX);
            parts.push((2, format!("{} left", Span(left))));
        }
        parts.push((4, phase.to_owned()));
        if self.ui.terminal {
            let position = parts_of_bar(share.unwrap_or(0.0) * BAR_PARTS as f64);
            self.bar.show_parts(position, &parts);
        } else if state.printed.elapsed() >= LINE_EVERY {
            state.printed = Instant::now();
            parts.insert(1, (0, format!("{:.0} s", point.t_s)));
            self.ui.notice(&report::fit(&parts, usize::MAX));
        }
    }

    /// The statement has completed.
    pub(crate) fn done(&self, seconds: f64) {
        self.bar.clear();
        self.ui.notice(&format!("{:<12} {}", self.name, duration_us(seconds * 1e6)));
    }
}

/// The progress of a stage: a view of several lines, which gives way to the result.
pub(crate) struct RunProgress {
    ui: Ui,
    bar: Bar,
    plan: Plan,
    view: Mutex<LiveView>,
}

impl RunProgress {
    pub(crate) fn new(ui: Ui, plan: Plan) -> Self {
        let view = Mutex::new(LiveView::new(&plan, riops::host::machine::facts()));
        let bar = ui.bar(BAR_PARTS);
        // A notice before the measurement must not draw it.
        bar.bar.set_draw_target(ProgressDrawTarget::hidden());
        Self { ui, bar, plan, view }
    }

    /// Notes counters, which the next interval shows.
    pub(crate) fn sampled(&self, sample: &ProbePoint) {
        if let Ok(mut view) = self.view.lock() {
            view.add_sample(sample);
        }
    }

    /// Whether the measurement has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.view.lock().is_ok_and(|view| view.progress().0 >= 1.0)
    }

    /// Prints something, with the view below it.
    pub(crate) fn above_view(&self, print: impl FnOnce()) {
        self.bar.bar.suspend(print);
    }

    pub(crate) fn connected(&self, sessions: u64) {
        let warmup = match self.plan.warmup() {
            Duration::ZERO => String::new(),
            warmup => format!(", warming up for {}", Span(warmup)),
        };
        let sessions = number_of(sessions, "session");
        self.ui.notice(&format!("{sessions} connected{warmup}"));
    }

    pub(crate) fn draining(&self) {
        self.bar.clear();
        self.ui.notice(
            "measurement complete; waiting up to 1 minute for transactions in flight (Ctrl-C to skip)",
        );
    }

    pub(crate) fn measuring(&self) {
        self.ui.notice(&match self.plan.stop {
            Stop::DurationS(seconds) => format!("measuring for {}", Span::of_seconds(seconds)),
            Stop::Transactions(transactions) => {
                format!("measuring {} transactions", count(transactions))
            }
            Stop::Rows(rows) => format!("measuring {} rows", count(rows)),
        });
        self.bar.bar.set_draw_target(self.ui.draw_target());
        self.bar.bar.tick();
    }

    pub(crate) fn point(&self, point: &Point) {
        if !self.ui.intervals {
            return;
        }
        if !self.ui.terminal {
            return self.ui.notice(&report::interval_line(point, &self.plan));
        }
        let width = message_columns().saturating_sub(1 + ECHO_COLUMNS);
        // The lock is released before the terminal is written: a slow one must not delay the sampling.
        let drawn = self.view.lock().map(|mut view| {
            view.add(point);
            (view.progress(), view.document(width), view.parts())
        });
        let Ok(((share, progress), document, parts)) = drawn else {
            return;
        };
        let text = report::document_text(&document, width);
        let message = if text.lines().count() + ROWS_BESIDE_VIEW <= rows() {
            format!("{progress}\n{text}")
        } else {
            let parts: Vec<_> = [(0, progress)].into_iter().chain(parts).collect();
            report::fit(&parts, self.bar.message_columns())
        };
        self.bar.show_lines(parts_of_bar(share * BAR_PARTS as f64), message.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_texts_are_colored() {
        let colored = "\u{1b}[1ma\u{1b}[0m\n";
        assert_eq!(in_colors(true, "a\n", colored), colored);
        assert_eq!(in_colors(false, "a\n", colored), "a\n");
        assert_eq!(in_colors(true, "\u{9b}\n", "\u{9b}\n"), "\\u{9b}\n");
    }
}
