//! The result of a performance gate: text, Markdown and page from one document, `JUnit` XML, and annotations of a forge.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::document::{Badge, Document, Findings, Tone};
use crate::effect::{IntervalColumn, change_text, leveled_interval, outcome_text};
use crate::render::markdown::findings_markdown;
use crate::sections::undecided::{Counted, certain_text, to_decide};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::Figure;
use riops_model::stats::{Outcome, RatioInterval};
use riops_model::study::{GateMachine, GateRow, GateVerdict, GateView, GateWorkload};
use riops_model::units::format::{duration_us, joined, number_of, percent, short_id};
use riops_model::units::text::one_line;

/// Maximum length of a comment on GitHub, in characters.
const COMMENT_MAX: usize = 65_536;

/// Returns the document of the result.
pub fn gate(view: &GateView) -> Findings {
    let mut findings = with_figures(view, |_| true);
    if let [only] = view.workloads.as_slice() {
        findings.id.clone_from(&only.experiment);
    }
    findings
}

/// Returns the result as Markdown for a comment: if it is too long, only with the figures of the workloads that are not passed.
pub fn gate_markdown(view: &GateView) -> String {
    let text = findings_markdown(&with_figures(view, |_| true));
    if text.chars().count() <= COMMENT_MAX {
        return text;
    }
    let short = with_figures(view, |workload| workload.verdict != GateVerdict::NotSlower);
    let short = findings_markdown(&short);
    let note = "\n\nThe rest is too long for a comment.\n";
    match short.char_indices().nth(COMMENT_MAX - note.len()) {
        None => short,
        // Lines are complete.
        Some((end, _)) => {
            let kept = short.get(..end).and_then(|kept| kept.rsplit_once('\n'));
            kept.map_or("", |(kept, _)| kept).to_owned() + note
        }
    }
}

fn with_figures(view: &GateView, is_shown: impl Fn(&GateWorkload) -> bool) -> Findings {
    let [base, head] = &view.variants;
    let (verdict, tone) = verdict_text(view.verdict);
    let mut findings = Findings {
        badge: Some(Badge { text: verdict.to_owned(), tone }),
        ..Findings::new(format!("riops gate: {verdict} · {head} against {base}"))
    };
    let shown = view.workloads.iter().filter(|workload| is_shown(workload));
    let rows = shown.flat_map(|workload| workload.figures.iter().map(move |row| (workload, row)));
    findings.results.table(table("figures", rows));
    for workload in view.workloads.iter().filter(|workload| !workload.machines.is_empty()) {
        findings.results.table(machines_table(workload));
    }
    for workload in &view.workloads {
        let (_, tone) = verdict_text(workload.verdict);
        findings.conclusion.toned(&workload.name, text_of(workload), tone);
        add_doubts(&mut findings.conclusion, workload);
    }
    findings.conclusion.toned("verdict", format!("{verdict}: {head} against {base}"), tone);
    findings.conclusion.lines("note", view.exit.clone());
    let error = format!(
        "differences below {} are not relevant; at most a {} risk of a wrong verdict, overall",
        percent(view.effect),
        percent(view.error)
    );
    findings.conditions.line("method", error);
    findings.conditions.line("time", duration_us(view.seconds * 1e6));
    let experiments = view.workloads.iter().map(|workload| short_id(&workload.experiment));
    findings.conditions.line("experiments", joined(experiments, ", "));
    findings.answer = answer(&findings, view);
    findings
}

/// The main figure of each workload and each figure that is slower, and the workloads that are not passed.
fn answer(findings: &Findings, view: &GateView) -> Document {
    let mut answer = Document::default();
    answer.title(&findings.title);
    answer.gap();
    let rows = view.workloads.iter().flat_map(|workload| {
        let rows = workload.figures.iter().enumerate();
        let shown = rows.filter(|(position, row)| *position == 0 || is_slower(row));
        shown.map(move |(_, row)| (workload, row))
    });
    answer.table(table("", rows).for_cells());
    answer.gap();
    for workload in &view.workloads {
        let (_, tone) = verdict_text(workload.verdict);
        if workload.verdict != GateVerdict::NotSlower || view.workloads.len() == 1 {
            answer.toned(&workload.name, text_of(workload), tone);
        }
        add_doubts(&mut answer, workload);
    }
    answer.lines("note", view.exit.clone());
    answer
}

fn is_slower(row: &GateRow) -> bool {
    row.against.as_ref().is_some_and(|against| against.outcome == Some(Outcome::Slower))
}

fn table<'a>(
    title: &str,
    rows: impl Iterator<Item = (&'a GateWorkload, &'a GateRow)> + Clone,
) -> Table {
    let intervals =
        IntervalColumn::for_intervals(rows.clone().filter_map(|(_, row)| interval_of(row)));
    Table::from_items(title, rows, |(workload, row)| {
        let [base, head] = row.values.map(|value| row.figure.text(value));
        let against = row.against.as_ref();
        let outcome = against.and_then(|against| against.outcome);
        [
            (text_column("workload"), workload.name.as_str().into()),
            (text_column("figure"), row.figure.heading().into()),
            (number_column("base"), base.into()),
            (number_column("head"), head.into()),
            (number_column("change"), change(row)),
            (
                number_column(&intervals.title).optional(),
                interval_of(row).map(|interval| intervals.text(interval)).into(),
            ),
            (number_column("visible").optional(), row.visible().map(percent).into()),
            (text_column("verdict"), outcome.map(outcome_text).into()),
        ]
    })
}

/// The main figure on each machine.
fn machines_table(workload: &GateWorkload) -> Table {
    let main = workload.figures.first().map(|row| row.figure);
    let figure = main.map(Figure::heading).unwrap_or_default();
    let machines = &workload.machines;
    let interval = |machine: &GateMachine| machine.against.as_ref()?.interval;
    let intervals = IntervalColumn::for_intervals(machines.iter().filter_map(interval));
    let title = format!("{} on each machine", workload.name);
    Table::from_items(&title, machines, |machine| {
        let against = machine.against.as_ref();
        let value = |side: usize| -> Cell {
            let value = against.and_then(|against| against.means.get(side));
            value.zip(main).map(|(value, main)| main.text(*value)).into()
        };
        [
            (number_column("machine"), machine.machine.to_string().into()),
            (text_column("host"), machine.host.as_str().into()),
            (number_column("rounds"), machine.blocks.to_string().into()),
            (number_column(format!("{figure}, base")), value(0)),
            (number_column("head"), value(1)),
            (number_column("change"), against.map(|against| change_text(against.ratio)).into()),
            (
                number_column(&intervals.title).optional(),
                interval(machine).map(|interval| intervals.text(interval)).into(),
            ),
            (text_column("experiment"), short_id(&machine.experiment).into()),
        ]
    })
}

/// Adds what [`doubts`] returns.
fn add_doubts(to: &mut Document, workload: &GateWorkload) {
    for (label, text) in doubts(workload) {
        to.toned(&label, text, Tone::Warn);
    }
}

/// The machines that contradict the others, and those that may be a single one.
fn doubts(workload: &GateWorkload) -> Vec<(String, String)> {
    let figure = workload.figures.first().map(|row| row.figure.heading()).unwrap_or_default();
    let contradiction = |machine: &GateMachine| {
        let (own, others) = machine.against.as_ref().zip(machine.others)?;
        let text = format!(
            "contradicts the others: {figure} {} ({}); machines like the others are within {}",
            change_text(own.ratio),
            machine.host,
            leveled_interval(others)
        );
        Some((format!("machine {}", machine.machine), text))
    };
    let mut hosts: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for machine in &workload.machines {
        hosts.entry(&machine.host).or_default().push(machine.machine);
    }
    let shared = hosts.into_iter().filter(|(_, machines)| machines.len() > 1);
    let shared = shared.map(|(host, machines)| {
        let machines = joined(machines.iter().map(u32::to_string), ", ");
        let text = format!(
            "machines {machines} have one host name, {host}: if they are one machine, the error is not kept"
        );
        ("note".to_owned(), text)
    });
    workload.machines.iter().filter_map(contradiction).chain(shared).collect()
}

/// The verdict on a workload with the machines that contradict the others, for forms with one text.
fn whole_text(workload: &GateWorkload) -> String {
    let doubts = doubts(workload).into_iter().map(|(label, text)| format!("{label} {text}"));
    joined(std::iter::once(text_of(workload)).chain(doubts), " · ")
}

fn interval_of(row: &GateRow) -> Option<RatioInterval> {
    row.against.as_ref()?.interval
}

fn change(row: &GateRow) -> Cell {
    let [base, head] = row.values;
    let ratio = row.against.as_ref().map(|against| against.ratio);
    ratio.or((base > 0.0).then(|| head / base)).map(change_text).into()
}

/// A verdict as text, with its tone.
pub(crate) fn verdict_text(verdict: GateVerdict) -> (&'static str, Tone) {
    match verdict {
        GateVerdict::NotSlower => ("not slower", Tone::Good),
        GateVerdict::Inconclusive => ("INCONCLUSIVE", Tone::Warn),
        GateVerdict::Failed => ("FAILED", Tone::Bad),
        GateVerdict::Slower => ("SLOWER", Tone::Bad),
    }
}

/// The verdict on a workload, its reason, and what happened to its runs.
fn text_of(workload: &GateWorkload) -> String {
    let (verdict, _) = verdict_text(workload.verdict);
    let disturbed = |count: usize, what: &str| {
        let verb = if count == 1 { "was" } else { "were" };
        (count > 0).then(|| format!("{count} {verb} disturbed {what}"))
    };
    let repeated = disturbed(workload.repeated, "and repeated");
    let kept = disturbed(workload.disturbed, "but kept");
    let disturbed = joined(repeated.into_iter().chain(kept), ", ");
    let disturbed = if disturbed.is_empty() { disturbed } else { format!(": {disturbed}") };
    let (reason, runs) = (one_line(&workload.reason), number_of(workload.runs as u64, "run"));
    let undecided = workload.undecided.as_ref();
    let certain = undecided.map(|undecided| certain_text(&undecided.certain).0);
    let certain = certain.filter(|text| !text.is_empty()).map(|text| format!("certain: {text}"));
    let to_decide = undecided.map(|undecided| to_decide(undecided, Counted::Rounds));
    let to_decide =
        to_decide.filter(|text| !text.is_empty()).map(|text| format!("to decide: {text}"));
    let verdict = format!("{verdict}: {reason} · {runs}{disturbed}");
    joined([Some(verdict), certain, to_decide].into_iter().flatten(), " · ")
}

/// Returns the result as `JUnit` XML, a test case for each workload. A workload without a decision is a failure if `fails`,
/// otherwise skipped.
pub fn gate_junit(view: &GateView, fails: bool) -> String {
    let count = |verdict: GateVerdict| {
        view.workloads.iter().filter(|workload| workload.verdict == verdict).count()
    };
    let open = count(GateVerdict::Inconclusive);
    let failures = count(GateVerdict::Slower) + if fails { open } else { 0 };
    let (errors, skipped) = (count(GateVerdict::Failed), if fails { 0 } else { open });
    let (tests, seconds) = (view.workloads.len(), view.seconds);
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"");
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"riops gate\" {counts} time=\"{seconds:.3}\">\n\
         \x20 <testsuite name=\"riops gate\" {counts} skipped=\"{skipped}\" time=\"{seconds:.3}\">\n"
    );
    for workload in &view.workloads {
        let (name, message) = (xml(&workload.name), whole_text(workload));
        let exit = view.exit.as_ref().filter(|_| workload.verdict == GateVerdict::Inconclusive);
        let message = xml(&joined(std::iter::once(&message).chain(exit), " · "));
        let figures = workload.figures.iter();
        let figures =
            figures.map(|row| format!("{}: {}", row.figure.heading(), change(row).text()));
        let figures = xml(&joined(figures, "\n"));
        let inner = match workload.verdict {
            GateVerdict::NotSlower => String::new(),
            GateVerdict::Inconclusive if !fails => format!("<skipped>{message}</skipped>"),
            GateVerdict::Failed => format!("<error message=\"{message}\" type=\"failed\"/>"),
            verdict => {
                let kind = verdict.as_str();
                format!("<failure message=\"{message}\" type=\"{kind}\">{figures}</failure>")
            }
        };
        let _ = writeln!(
            text,
            "    <testcase name=\"{name}\" classname=\"riops.gate\" time=\"{:.3}\">{inner}<system-out>{message}\n{figures}</system-out></testcase>",
            workload.seconds
        );
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// A text within XML: without the characters that XML 1.0 does not have.
fn xml(text: &str) -> String {
    let is_allowed = |c: &char| matches!(c, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let mut escaped = String::new();
    for c in text.chars().filter(is_allowed) {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Returns the workloads that are not passed as workflow commands of GitHub (GitHub Docs, "Workflow commands").
pub fn gate_annotations(view: &GateView, fails: bool) -> String {
    let escaped = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| escaped(text).replace(':', "%3A").replace(',', "%2C");
    let mut text = String::new();
    for workload in &view.workloads {
        let level = match workload.verdict {
            GateVerdict::NotSlower => continue,
            GateVerdict::Inconclusive if !fails => "warning",
            _ => "error",
        };
        let title = property(&format!("riops gate: {}", workload.name));
        let _ = writeln!(text, "::{level} title={title}::{}", escaped(&whole_text(workload)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::answers;
    use crate::document_text;
    use riops_model::study::evaluation::Against;

    fn workload(name: &str, verdict: GateVerdict) -> GateWorkload {
        let slower = verdict == GateVerdict::Slower;
        let ratio = if slower { 0.9 } else { 1.001 };
        GateWorkload {
            name: name.to_owned(),
            experiment: "0190c0de-0000-7000-8000-000000000001".to_owned(),
            verdict,
            reason: "ended after 4 rounds".to_owned(),
            runs: 18,
            repeated: 2,
            disturbed: 1,
            seconds: 20.5,
            undecided: None,
            figures: vec![GateRow {
                figure: Figure::TransactionsPerS,
                values: [1_000.0, 1_000.0 * ratio],
                against: Some(Against {
                    ratio,
                    means: [1_000.0, 1_000.0 * ratio],
                    interval: Some(RatioInterval {
                        low: ratio - 0.01,
                        high: ratio + 0.01,
                        coverage: 0.97,
                    }),
                    p_adjusted: Some(0.01),
                    outcome: Some(if slower { Outcome::Slower } else { Outcome::Equivalent }),
                    runs_needed: None,
                    runs_expected: None,
                }),
            }],
            machines: Vec::new(),
        }
    }

    fn view(workloads: Vec<GateWorkload>) -> GateView {
        GateView {
            verdict: GateVerdict::worst(&workloads),
            variants: ["main".to_owned(), "fix <&>".to_owned()],
            effect: 0.02,
            error: 0.05,
            seconds: 41.0,
            exit: None,
            workloads,
        }
    }

    #[test]
    fn the_worst_workload_decides_and_each_form_says_why() {
        let result = view(vec![
            workload("oltp \"a\"", GateVerdict::NotSlower),
            workload("rows", GateVerdict::Slower),
            workload("point", GateVerdict::Inconclusive),
        ]);
        assert_eq!(result.verdict, GateVerdict::Slower);
        insta::assert_snapshot!(answers(&gate(&result)));
        insta::assert_snapshot!(gate_markdown(&result));
        insta::assert_snapshot!(gate_junit(&result, false));
        insta::assert_snapshot!(gate_annotations(&result, true));
        assert!(gate_junit(&result, true).contains("failures=\"2\""));
        let text = document_text(&gate(&result).conclusion, 200);
        assert!(
            text.contains("SLOWER: ended after 4 rounds · 18 runs: 2 were disturbed and repeated"),
            "{text}"
        );
    }

    #[test]
    fn a_machine_that_contradicts_the_others_is_named_in_each_form() {
        let mut judged = workload("rows", GateVerdict::NotSlower);
        let against = judged.figures[0].against.clone();
        let machine = |machine: u32, others| GateMachine {
            machine,
            host: format!("host{}", machine.min(1)),
            experiment: judged.experiment.clone(),
            blocks: 4,
            against: against.clone(),
            others,
        };
        let others = RatioInterval { low: 1.05, high: 1.1, coverage: 0.99 };
        judged.machines = vec![machine(0, Some(others)), machine(1, None), machine(2, None)];
        let result = view(vec![judged.clone()]);
        insta::assert_snapshot!(crate::findings_text(&gate(&result), 110));
        judged.verdict = GateVerdict::Slower;
        let result = view(vec![judged]);
        let text = "contradicts the others: TPS +0.1% (host0); machines like the others are within +5.0% to +10.0%, 99% interval";
        let texts = [
            answers(&gate(&result)),
            gate_markdown(&result),
            gate_junit(&result, false),
            gate_annotations(&result, false),
        ];
        for form in texts {
            let form = form.replace("%25", "%").split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(form.contains("contradicts the others"), "{form}");
        }
        assert!(gate_annotations(&result, false).replace("%25", "%").contains(text));
    }

    #[test]
    fn an_inconclusive_gate_says_why_it_passes_and_intervals_have_their_level() {
        let mut open = view(vec![workload("point", GateVerdict::Inconclusive)]);
        open.exit = Some("exit code 0: inconclusive = \"pass\"".to_owned());
        let text = crate::findings_text(&gate(&open), 200);
        assert!(text.contains("exit code 0: inconclusive = \"pass\""), "{text}");
        assert!(text.contains("97% interval"), "{text}");
        assert!(gate_markdown(&open).contains("exit code 0: inconclusive = \"pass\""));
        let exit = "exit code 0: inconclusive = &quot;pass&quot;</skipped>";
        assert!(gate_junit(&open, false).contains(exit), "{}", gate_junit(&open, false));
    }

    #[test]
    fn a_comment_is_not_longer_than_a_forge_accepts() {
        let many = |verdict| (0..2_000).map(|n| workload(&format!("w{n}"), verdict)).collect();
        for verdict in [GateVerdict::NotSlower, GateVerdict::Slower] {
            let text = gate_markdown(&view(many(verdict)));
            assert!(text.chars().count() <= COMMENT_MAX, "{}", text.len());
            assert!(text.contains("w0") && text.ends_with('\n'));
        }
    }
}
