//! Texts with reports of runs of all tools, one after the other or mixed, and lines of other programs between them.

use std::collections::BTreeMap;

use super::error::ImportError;
use super::format::Format;
use super::input::Input;
use super::lines::Lines;
use super::pgbench::PgbenchReport;
use super::results::{Report, RunResults};
use super::sysbench::SysbenchReport;

/// Returns the runs of all tools in a text, in their order. Fails if there is none, or if a report is incomplete. A run that
/// ended before its report has no results: a notice names it. If a format is given, only the runs of this tool are returned.
pub(super) fn read(
    input: Input,
    given: Option<Format>,
) -> Result<Vec<(Format, RunResults)>, ImportError> {
    let name = input.name.clone();
    let mut lines = Lines::default();
    let mut others = BTreeMap::new();
    let mut sources: Vec<(Reader<PgbenchReport>, Reader<SysbenchReport>)> = Vec::new();
    let is_replaced = input.for_each_text_line(|position, raw| {
        let line = lines.line(raw);
        if let Some(format) =
            Format::from_line(raw.trim_end()).or_else(|| Format::from_line(&line.text))
        {
            others.entry(format).or_insert(position);
        }
        if sources.len() <= line.source {
            sources.resize_with(line.source + 1, Default::default);
        }
        if let Some((pgbench, sysbench)) = sources.get_mut(line.source) {
            pgbench.line(position, &line.text);
            sysbench.line(position, &line.text);
        }
    })?;
    let mut all = Runs { given, ..Runs::default() };
    for (pgbench, sysbench) in sources {
        all.add(pgbench);
        all.add(sysbench);
    }
    all.others = others;
    all.is_replaced = is_replaced;
    all.finish(&name, lines.unknown.as_deref())
}

/// The reports of a tool, as they are read.
#[derive(Default)]
struct Reader<R> {
    report: R,
    /// The line with which the report began.
    start: u64,
    ended: Vec<(u64, Result<RunResults, String>)>,
    /// First lines of the runs without results.
    skipped: Vec<u64>,
    /// The first line that could not be read. No line after it is.
    wrong: Option<(u64, String)>,
}

impl<R: Report> Reader<R> {
    fn line(&mut self, position: u64, line: &str) {
        if self.wrong.is_some() {
            return;
        }
        if let Some(next) = self.report.next(line) {
            let report = std::mem::replace(&mut self.report, next);
            self.end(report);
            self.start = position;
        }
        let has_begun = self.report.has_begun();
        // Before a report, it is the line of another program.
        if let Err(reason) = self.report.line(line)
            && has_begun
        {
            self.wrong = Some((position, reason));
        }
        if self.start == 0 && !has_begun && self.report.has_begun() {
            self.start = position;
        }
    }

    fn end(&mut self, report: R) {
        if report.has_results() {
            self.ended.push((self.start, report.finish()));
        } else if report.has_started() {
            self.skipped.push(self.start);
        }
    }
}

/// The runs in a text.
#[derive(Default)]
struct Runs {
    given: Option<Format>,
    usable: Vec<(u64, Format, RunResults)>,
    /// The first line of a report that cannot be used, and why.
    wrong: Option<(u64, String)>,
    /// What the last run without results lacks.
    missing: Option<(u64, String)>,
    skipped: BTreeMap<Format, Vec<u64>>,
    /// First lines of results of other tools and in other formats.
    others: BTreeMap<Format, u64>,
    left_out: BTreeMap<Format, u64>,
    is_replaced: bool,
}

impl Runs {
    /// Adds the runs of a tool in the lines of a source.
    fn add<R: Report>(&mut self, mut reader: Reader<R>) {
        let report = std::mem::take(&mut reader.report);
        let is_empty = report.has_begun() && !report.has_results();
        let start = reader.start;
        if is_empty && report.has_started() {
            reader.skipped.push(start);
        }
        if reader.wrong.is_some() {
            // The report ends with the line that could not be read.
        } else if !is_empty {
            reader.end(report);
        } else if let Err(reason) = report.finish() {
            self.missing = Some((start, reason)).filter(|_| self.is_wanted(R::FORMAT));
        }
        if !self.is_wanted(R::FORMAT) {
            let first = reader.ended.iter().find(|(_, run)| run.is_ok()).map(|(line, _)| *line);
            self.left_out.extend(first.map(|line| (R::FORMAT, line)));
            return;
        }
        for (line, result) in reader.ended {
            match result {
                Ok(run) => self.usable.push((line, R::FORMAT, run)),
                Err(reason) => self.fail(line, reason),
            }
        }
        if let Some((line, reason)) = reader.wrong {
            self.fail(line, reason);
        }
        self.skipped.entry(R::FORMAT).or_default().extend(reader.skipped);
    }

    fn is_wanted(&self, format: Format) -> bool {
        self.given.is_none_or(|given| given == format)
    }

    fn fail(&mut self, line: u64, reason: String) {
        if self.wrong.as_ref().is_none_or(|(first, _)| line < *first) {
            self.wrong = Some((line, reason));
        }
    }

    /// Returns the runs in the order of the text, with the notices.
    fn finish(
        mut self,
        name: &str,
        unknown_prefix: Option<&str>,
    ) -> Result<Vec<(Format, RunResults)>, ImportError> {
        if let Some((line, reason)) = self.wrong.take() {
            return Err(ImportError::line(name, line, reason));
        }
        if self.usable.is_empty() {
            return Err(self.nothing(name, unknown_prefix));
        }
        self.usable.sort_by_key(|(line, ..)| *line);
        let notices = self.notices(name);
        let mut runs = Vec::new();
        for (start, format, mut run) in self.usable {
            let failed = run.failure.iter();
            let failed: Vec<_> =
                failed.map(|failure| format!("{name}, line {start}: {failure}")).collect();
            run.notices.extend(failed);
            if run.has_gaps {
                run.notices.push(format!(
                    "{name}, line {start}: lines of intervals are missing: the series has gaps"
                ));
            }
            runs.push((format, run));
        }
        if let Some((_, first)) = runs.first_mut() {
            first.notices.extend(notices);
        }
        Ok(runs)
    }

    /// Why a text has no runs.
    fn nothing(self, name: &str, unknown_prefix: Option<&str>) -> ImportError {
        let of_tool = match self.given {
            Some(Format::Sysbench) => SysbenchReport::default().finish().err(),
            Some(_) => PgbenchReport::default().finish().err(),
            None => None,
        };
        match (self.missing.or(of_tool.map(|reason| (1, reason))), unknown_prefix) {
            (_, Some(prefix)) => ImportError::contents(
                name,
                format!(
                    "a line of a report begins after \"{prefix}\": remove this prefix of the lines"
                ),
            ),
            (Some((line, reason)), None) => ImportError::line(name, line, reason),
            (None, None) => ImportError::UnknownFormat(name.to_owned()),
        }
    }

    fn notices(&self, name: &str) -> Vec<String> {
        let mut notices = Vec::new();
        for (format, lines) in &self.skipped {
            let mut lines = lines.clone();
            lines.sort_unstable();
            notices.extend(skipped_notice(&lines, name, format.as_str()));
        }
        for (format, line) in &self.left_out {
            notices.push(format!(
                "{name}, line {line}: reports of {} were not imported (--from)",
                format.as_str()
            ));
        }
        for (format, line) in &self.others {
            notices.push(format!(
                "{name}, line {line}: results in the format {} were not imported; import them from a file of their own",
                format.as_str()
            ));
        }
        if self.is_replaced {
            notices.push(format!("{name}: bytes that are not UTF-8 were replaced"));
        }
        notices
    }
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
