//! Texts with reports of runs, one after the other, and lines of other programs between them.

use super::error::ImportError;
use super::format::unquoted;
use super::found::Found;
use crate::record::Point;

/// A report while it is read.
pub(super) trait Report: Default {
    /// Name of the tool in messages.
    const TOOL: &'static str;

    /// Returns the report that begins with this line, if the line does not belong to this one. Without a header, it has
    /// that of this one.
    fn next(&self, line: &str) -> Option<Self>;

    /// Reads a line. Lines of other programs are ignored.
    fn line(&mut self, line: &str) -> Result<(), String>;

    /// Whether there is a result: the report must be complete.
    fn has_results(&self) -> bool;

    /// Whether a run began, which may have ended before its report.
    fn has_started(&self) -> bool;

    /// Returns the run, or what is missing.
    fn finish(self) -> Result<Found, String>;
}

/// Returns the runs in a text. Fails if there is none, or if a report is incomplete. A run that ended before its report
/// has no results: a notice names it.
pub(super) fn read<R: Report>(text: &str, name: &str) -> Result<Vec<Found>, ImportError> {
    let mut runs = Vec::new();
    let mut skipped = Vec::new();
    let (mut report, mut start) = (R::default(), 1);
    for (number, content) in (1..).zip(text.lines()) {
        let line = unquoted(content);
        if let Some(next) = report.next(line) {
            let ended = std::mem::replace(&mut report, next);
            if ended.has_results() {
                runs.push(finish(ended, name, start)?);
            } else if ended.has_started() {
                skipped.push(start);
            }
            start = number;
        }
        report.line(line).map_err(|reason| ImportError::line(name, number, reason))?;
    }
    if runs.is_empty() || report.has_results() {
        runs.push(finish(report, name, start)?);
    } else if report.has_started() {
        skipped.push(start);
    }
    if let Some(first) = runs.first_mut() {
        first.notices.extend(skipped_notice(&skipped, name, R::TOOL));
    }
    Ok(runs)
}

/// From this number of intervals on, the time between two lines is a gap: lines were cut out of the report. A busy tool
/// may print a line late.
const GAP_INTERVALS_MIN: f64 = 3.0;

/// Returns the length of the interval that ends at `t_s`. After a gap, it is that of the interval before.
pub(super) fn interval_length(points: &[Point], t_s: f64) -> f64 {
    match points.last() {
        Some(last) if t_s - last.t_s >= GAP_INTERVALS_MIN * last.seconds => last.seconds,
        Some(last) => t_s - last.t_s,
        None => t_s,
    }
}

fn has_gaps(points: &[Point]) -> bool {
    let is_gap = |(one, other): (&Point, &Point)| {
        other.t_s - one.t_s > other.seconds * (1.0 + f64::EPSILON.sqrt())
    };
    points.iter().zip(points.iter().skip(1)).any(is_gap)
}

/// A notice about the runs that ended before their report, whose first lines are given.
fn skipped_notice(lines: &[u64], name: &str, tool: &str) -> Option<String> {
    match lines {
        [] => None,
        [line] => {
            Some(format!("{name}, line {line}: a run of {tool} without a report was not imported"))
        }
        [line, ..] => Some(format!(
            "{name}: {} runs of {tool} without a report were not imported, the first one in line {line}",
            lines.len()
        )),
    }
}

fn finish<R: Report>(report: R, name: &str, start: u64) -> Result<Found, ImportError> {
    let mut found = report.finish().map_err(|reason| ImportError::line(name, start, reason))?;
    let failed = found.failure.as_ref().map(|failure| format!("{name}, line {start}: {failure}"));
    found.notices.extend(failed);
    if has_gaps(&found.stage.session_loop.series) {
        found.notices.push(format!(
            "{name}, line {start}: lines of intervals are missing: the series has gaps"
        ));
    }
    Ok(found)
}
