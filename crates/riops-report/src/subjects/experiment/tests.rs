use super::*;
use crate::answer::answers;
use crate::chart::{Content, PointStyle};
use crate::render::fill::columns;
use crate::{Delivery, Layout, findings_html, findings_markdown, findings_text};
use riops_model::figure::Figure;
use riops_model::plan::Plan;
use riops_model::plan::ping::PingRun;
use riops_model::record::{Outcomes, Warning, WarningKind};
use riops_model::stats::{Outcome, RatioInterval, ResidualCheck};
use riops_model::study::{Search, Study};
use riops_model::units::text::json_text;

fn shown(study: &Study) -> String {
    let view = view(study);
    for width in 40..=200 {
        for line in text(&view, width).lines() {
            assert!(columns(line) <= width, "{width}: {line}");
        }
    }
    text(&view, 100)
}

fn text(view: &StudyView, width: usize) -> String {
    findings_text(&experiment(view), width)
}

fn page(view: &StudyView) -> String {
    findings_html(&experiment(view), &Layout::new("study", Delivery::Inline)).unwrap()
}

#[test]
fn the_text_of_a_sweep_over_two_axes() {
    insta::assert_snapshot!(shown(&example::batch_size(5)));
}

#[test]
fn the_answers_of_experiments() {
    let studies = [
        example::batch_size(5),
        example::with_failures(),
        example::instances(["0.36 USD/h", "0.90 USD/h", "0.50 USD/h"]),
        example::ab(4, 1.05),
        example::ab(4, 1.005),
        example::saturation(Search::Sessions),
        example::saturation(Search::Rate),
    ];
    insta::assert_snapshot!(studies.map(|study| answers(&experiment(&view(&study)))).join("\n\n"));
}

#[test]
fn the_text_of_a_sweep_over_services_and_nodes() {
    insta::assert_snapshot!(shown(&example::nodes(6)));
}

#[test]
fn the_text_of_a_sweep_over_working_sets() {
    insta::assert_snapshot!(shown(&example::memory_to_disk(6)));
}

#[test]
fn the_text_of_a_sweep_with_failures() {
    insta::assert_snapshot!(shown(&example::with_failures()));
}

#[test]
fn the_frontier_has_the_cells_that_no_other_one_beats() {
    let study = example::instances(["0.36 USD/h", "0.90 USD/h", "0.50 USD/h"]);
    let table = frontier::table(&view(&study)).unwrap();
    let column = |name: &str| table.columns.iter().position(|column| column.title == name).unwrap();
    let texts = |name: &str| -> Vec<&str> {
        table.rows.iter().map(|row| row[column(name)].text()).collect()
    };
    assert_eq!(texts("frontier"), ["yes", "yes", "beaten by server=small"]);
    assert_eq!(texts("price per hour"), ["0.360", "0.900", "0.500"]);
    // 0.36 for 3.6 million transactions of an hour at about 1,000/s.
    assert!(
        texts("price/1M tx")[0].starts_with("0.10") || texts("price/1M tx")[0].starts_with("0.09"),
        "{table:?}"
    );
    let chart = frontier::chart(&view(&study)).unwrap();
    assert!(chart.summary.starts_with("2 of 3 cells"), "{}", chart.summary);
    let Content::Points { series, .. } = chart.plot.content else { panic!() };
    let counts: Vec<_> = series
        .iter()
        .map(|one_series| (one_series.label.as_str(), one_series.points.len()))
        .collect();
    assert_eq!(counts, [("on the frontier", 2), ("beaten", 1)]);
}

#[test]
fn a_cell_that_costs_the_same_in_another_unit_is_not_cheaper() {
    let study = example::instances(["0.796 USD/h", "0.90 USD/h", "19.104 USD/d"]);
    let table = frontier::table(&view(&study)).unwrap();
    let verdicts: Vec<_> = table.rows.iter().map(|row| row.last().unwrap().text()).collect();
    assert_eq!(verdicts, ["yes", "yes", "beaten by server=small"]);
}

#[test]
fn prices_of_different_currencies_are_not_compared() {
    let study = example::instances(["0.36 USD/h", "0.90 EUR/h", "0.50/h"]);
    let view = view(&study);
    assert!(frontier::table(&view).is_none() && frontier::chart(&view).is_none());
    let text = text(&view, 100);
    assert!(text.contains("different currencies (none, EUR, USD)"), "{text}");
    assert!(!text.contains("price/1M tx"), "{text}");
}

#[test]
fn behind_a_pooler_both_sizes_are_shown() {
    let mut study = example::saturation(Search::Sessions);
    for run in &mut study.finished {
        let record = run.result.as_mut().unwrap();
        record.target.pooler = Some("a pooler".to_owned());
        let probes = record.stages[0].probes.get_or_insert_default();
        probes.backends_max = Some(if run.task.block > 1 { 11 } else { 4 });
    }
    let view = view(&study);
    assert_eq!(view.cells[0].saturation.as_ref().unwrap().pool, Some(12));
    let text = text(&view, 100);
    assert!(text.contains("24 sessions through 12 connections of the pooler, "), "{text}");
}

#[test]
fn a_box_shows_the_quartiles_and_each_run() {
    let charts = charts::charts(&view(&example::batch_size(5)));
    let chart = charts.iter().find(|chart| chart.id == "study-runs").unwrap();
    let Content::Points { names, series, .. } = &chart.plot.content else { panic!() };
    assert_eq!((names.len(), names[0].as_str()), (12, "sessions=1 batch=1"));
    for point in &series[0].points {
        let mut runs = point.values.clone();
        runs.sort_by(f64::total_cmp);
        let [lowest, first, median, third, highest] = runs[..] else { panic!("{runs:?}") };
        assert_eq!((point.interval, point.y), (Some((lowest, highest)), median));
        assert_eq!(point.quartiles, Some((first, third)));
        // The cells differ by more than their runs: each is drawn relative to its median.
        assert!((median - 100.0).abs() < 0.01, "{runs:?}");
    }
    assert!(chart_png(chart, "").is_ok());
    // Four runs and more have quartiles.
    let few = charts::charts(&view(&example::batch_size(3)));
    assert!(few.iter().all(|chart| chart.id != "study-runs"));
    // Cells that differ less are on one axis.
    let charts = charts::charts(&view(&example::ab(4, 1.1)));
    let of_test = charts.iter().find(|chart| chart.id == "study-runs").unwrap();
    let Content::Points { names, series, .. } = &of_test.plot.content else { panic!() };
    assert_eq!(names, &["a.toml", "b.toml"]);
    assert!((series[0].points[1].y / series[0].points[0].y - 1.1).abs() < 0.02);
}

#[test]
fn two_axes_have_a_heat_map_with_the_measured_values_on_its_axes() {
    let charts = charts::charts(&view(&example::batch_size(5)));
    let map = charts.iter().find(|chart| chart.id == "study-heat-1").unwrap();
    let Content::Grid { columns, rows, cells, .. } = &map.plot.content else { panic!() };
    assert_eq!((columns[0].as_str(), columns[5].as_str()), ("1", "100_000"));
    assert_eq!(rows, &["1", "4"]);
    assert_eq!(cells.len(), 12);
    let most = cells.iter().max_by(|one, other| one.2.total_cmp(&other.2)).unwrap();
    assert_eq!((most.0, most.1), (4, 1));
    assert_eq!((map.plot.x.label.as_str(), map.plot.y.label.as_str()), ("batch", "sessions"));
    let one_axis = charts::charts(&view(&example::memory_to_disk(6)));
    assert!(one_axis.iter().all(|chart| !chart.id.starts_with("study-heat")));
}

#[test]
fn the_text_of_an_ab_test() {
    insta::assert_snapshot!(shown(&example::ab(4, 1.05)));
}

#[test]
fn a_search_that_was_ended_before_its_result_is_unfinished() {
    let mut study = example::saturation(Search::Sessions);
    let text = |study: &Study| findings_text(&experiment(&view(study)), 100);
    assert!(!text(&study).contains("unfinished") && !text(&study).contains("so far"));
    study.finished.truncate(2);
    let short = text(&study);
    assert!(short.contains("runs         2 runs so far"), "{short}");
    assert!(short.contains("caution      unfinished: more runs were planned"), "{short}");
    assert_eq!(experiment(&view(&study)).badge.unwrap().text, "incomplete");
}

#[test]
fn the_text_of_a_search_for_sessions() {
    insta::assert_snapshot!(shown(&example::saturation(Search::Sessions)));
}

#[test]
fn the_text_of_a_search_for_a_rate() {
    insta::assert_snapshot!(shown(&example::saturation(Search::Rate)));
}

#[test]
fn the_markdown_of_a_sweep_over_services_and_nodes() {
    insta::assert_snapshot!(findings_markdown(&experiment(&view(&example::nodes(6)))));
}

#[test]
fn a_cell_is_estimated_from_its_runs_and_percentiles_from_their_merged_histograms() {
    let study = example::nodes(6);
    let view = view(&study);
    let cell = &view.cells[1].group;
    let tps = &cell.figure(0, Figure::TransactionsPerS).unwrap().estimate;
    assert_eq!((tps.runs.len(), cell.runs.usable), (6, 6));
    let geometric = tps.runs.iter().map(|run| run.ln()).sum::<f64>() / 6.0;
    assert!((tps.value - geometric.exp()).abs() < 1e-9);
    let interval = tps.interval.unwrap();
    assert!(interval.low < tps.value && tps.value < interval.high, "{tps:?}");
    let p95 = &cell.figure(0, Figure::P95Us).unwrap().estimate;
    let texts = study.finished.iter().filter(|run| run.task.cell == 1);
    let stored = texts.filter_map(|run| run.usable()?.stages[0].session_loop.histogram.as_ref());
    let merged = riops_model::record::Histogram::merged(stored).unwrap().unwrap();
    assert!((p95.value - merged.quantile(0.95).as_micros()).abs() < 1e-6, "{p95:?}");
}

#[test]
fn cells_are_judged_in_their_blocks_and_only_with_enough_of_them() {
    let against = |repeats| {
        let view = view(&example::nodes(repeats));
        view.cells[2].group.figure(0, view.main).unwrap().against_baseline.clone().unwrap()
    };
    let (three, four, six) = (against(3), against(4), against(6));
    assert_eq!((three.outcome, three.runs_needed), (Some(Outcome::Inconclusive), Some(1)));
    assert_eq!((four.outcome, four.runs_needed), (Some(Outcome::Faster), None));
    assert_eq!((six.outcome, six.runs_needed), (Some(Outcome::Faster), None));
    assert!((six.ratio / (409.87 / 213.32) - 1.0).abs() < 0.005, "{six:?}");
    let one = view(&example::nodes(1));
    let single = one.cells[2].group.figure(0, one.main).unwrap();
    assert_eq!(single.against_baseline.as_ref().unwrap().outcome, None);
    assert!(single.estimate.interval.is_none());
    assert!(one.notes.iter().any(|note| note.starts_with("one run per combination")), "{one:?}");
}

#[test]
fn the_effect_of_an_axis_is_the_geometric_mean_over_the_other_settings() {
    let view = view(&example::batch_size(6));
    let [sessions, batch] = view.effects.as_slice() else { panic!("{:?}", view.effects) };
    assert_eq!((sessions.axis.as_str(), sessions.combinations), ("sessions", 6));
    assert_eq!((batch.values.len(), batch.combinations), (6, 2));
    let effect = sessions.values[1].main.as_ref().unwrap();
    let value = |at: usize| view.main_of(&view.cells[at].group).unwrap().estimate.value;
    let logs: f64 = (0..6).map(|at| (value(at + 6) / value(at)).ln()).sum();
    assert!((effect.ratio / (logs / 6.0).exp() - 1.0).abs() < 0.001, "{effect:?}");
    assert_eq!(effect.outcome, Some(Outcome::Faster));
}

#[test]
fn charts_contain_the_interval_of_every_point() {
    let view = view(&example::batch_size(5));
    let charts = charts::charts(&view);
    let Content::Points { names, series, .. } = &charts[0].plot.content else { panic!() };
    assert_eq!((names.len(), series.len(), series[0].points.len()), (6, 2, 6));
    for (point, cell) in series[1].points.iter().zip(&view.cells[6..]) {
        let estimate = &view.main_of(&cell.group).unwrap().estimate;
        let (low, high) = point.interval.unwrap();
        let interval = estimate.interval.unwrap();
        assert!(
            (low / interval.low - 1.0).abs() < 1e-4 && (high / interval.high - 1.0).abs() < 1e-4
        );
    }
    // Both renderers get them: the page as JSON, the terminal and the image from the same values.
    let page = page(&view);
    // The third part are the ranges of the boxes.
    assert_eq!(page.matches("\"interval\": [").count(), 36, "{} charts", charts.len());
    assert!(text(&view, 100).contains("┬┴ 95% interval"));
    assert_eq!(png(&view).unwrap().len(), charts.len());
}

#[test]
fn the_fitted_law_is_drawn_with_its_band_and_its_marks() {
    let view = view(&example::saturation(Search::Sessions));
    let chart = &charts::charts(&view)[0];
    let Content::Points { series, .. } = &chart.plot.content else { panic!() };
    let law = series.iter().find(|one_series| one_series.style == PointStyle::Band).unwrap();
    assert!(law.points.len() > 20 && law.points.iter().all(|point| point.interval.is_some()));
    let marks: Vec<&str> = chart.plot.marks.iter().map(|mark| mark.label.as_str()).collect();
    assert_eq!(marks, ["knee", "N90", "saturation", "peak"]);
}

#[test]
fn a_law_that_the_measurements_do_not_follow_has_no_figures_in_the_conclusion() {
    let mut result = view(&example::saturation(Search::Sessions));
    let lines = |view: &StudyView| text(view, 200);
    let reliable = "the measurements follow the law: reliable up to 128 sessions";
    assert!(lines(&result).contains(reliable), "{}", lines(&result));
    assert!(
        lines(&result).contains("at 9,268 TPS, which are below the 10,297 TPS of the closed loop")
    );
    let of_sessions = result.cells[0].saturation.as_mut().unwrap().sessions.as_mut().unwrap();
    of_sessions.law.as_mut().unwrap().residuals = ResidualCheck::Outlier { n: 8.0, ratio: 1.5 };
    let shown = lines(&result);
    assert!(!shown.contains("  law          knee"), "{shown}");
    assert!(shown.contains("the fitted curve; its figures are not reliable"), "{shown}");
}

#[test]
fn cells_that_miss_a_threshold_are_not_the_best() {
    let view = view(&example::with_failures());
    assert!(!view.cells[2].group.meets_thresholds());
    assert_eq!((view.best, view.baseline), (Some(1), Some(0)));
    assert_eq!((view.runs.usable, view.runs.invalid, view.runs.failed), (8, 1, 3));
    assert_eq!(view.cells[3].group.reasons[0].runs, 3);
}

#[test]
fn explains_a_change_that_differs_from_the_ratio_of_the_values() {
    let mut view = view(&example::ab(4, 1.1));
    let note = "the changes are computed from geometric means within rounds";
    let one_line = |view: &StudyView| text(view, 200).replace('\n', " ");
    assert!(!one_line(&view).contains(note), "{}", one_line(&view));
    view.improvement.as_mut().unwrap().rows[0].to *= 1.05;
    assert!(one_line(&view).contains(note), "{}", one_line(&view));
}

#[test]
fn headlines_show_no_effect_of_an_inconclusive_comparison() {
    let mut result = view(&example::ab(4, 1.1));
    assert!(headline(&result).unwrap().value.starts_with('+'));
    let main = result.main;
    let stage = &mut result.cells[1].group.stages[0];
    let figure = stage.figures.iter_mut().find(|figure| figure.figure == main).unwrap();
    let against = figure.against_baseline.as_mut().unwrap();
    against.ratio = 0.863;
    against.interval = Some(RatioInterval { low: 0.7, high: 1.04, coverage: 0.95 });
    against.outcome = Some(Outcome::Inconclusive);
    let against = against.clone();
    let row = result.improvement.as_mut().unwrap().rows.iter_mut().find(|row| row.figure == main);
    row.unwrap().against = Some(against);
    result.ab.as_mut().unwrap().verdict = Some(Outcome::Inconclusive);
    let line = text(&result, 200);
    let line = line.lines().find(|line| line.contains("  verdict  ")).unwrap();
    assert!(line.ends_with("inconclusive: rows/s may differ by -30.0% to +4.0%"), "{line}");
    let shown = headline(&result).unwrap();
    assert_eq!((shown.value.as_str(), shown.unit.as_str()), ("inconclusive", "rows/s"));
    // The best cell of a sweep does not differ from the baseline.
    let mut result = view(&example::nodes(4));
    let best = result.best.unwrap();
    let detail = |view: &StudyView| headline(view).unwrap().detail;
    assert!(detail(&result).ends_with("x the baseline"), "{}", detail(&result));
    let main = result.main;
    let alone = result.cells[best].group.figure(0, main).unwrap().against_baseline.clone().unwrap();
    let of_all = result.best_against.as_mut().unwrap();
    // The interval for the best of several cells is longer.
    let (of_one, of_best) = (alone.interval.unwrap(), of_all.interval.unwrap());
    assert!(of_best.low < of_one.low && of_best.high > of_one.high, "{of_one:?} {of_best:?}");
    of_all.outcome = Some(Outcome::Inconclusive);
    let expected = "no significant difference from the baseline";
    assert!(detail(&result).ends_with(expected), "{}", detail(&result));
}

#[test]
fn cells_of_which_another_share_of_the_transactions_succeeded_are_named() {
    let mut study = example::ab(4, 1.1);
    let has_note =
        |study: &Study| view(study).notes.iter().any(|note| note.contains("did not succeed"));
    assert!(!has_note(&study));
    for finished in &mut study.finished {
        let record = finished.result.as_mut().unwrap();
        let transactions = record.stages[0].transactions;
        let failed = if finished.task.cell == 1 { transactions / 10 } else { 0 };
        let (attempted, succeeded) = (transactions + failed, transactions);
        let outcomes = Outcomes { attempted, succeeded, failed, unknown: 0 };
        record.stages[0].session_loop.outcomes = Some(outcomes);
    }
    assert!(has_note(&study), "{:?}", view(&study).notes);
}

#[test]
fn the_page_of_a_test_names_what_differs_and_is_not_green_with_disturbed_runs() {
    let mut study = example::ab(4, 1.1);
    let badge = |study: &Study| super::badge(&view(study));
    let good = badge(&study);
    assert_eq!((good.text.as_str(), good.tone), ("all runs valid", Tone::Good));
    let load = "other processes used the CPU".to_owned();
    let warning = Warning { kind: WarningKind::ForeignCpu, stage: None, text: load };
    for finished in &mut study.finished {
        let record = finished.result.as_mut().unwrap();
        record.verdict.warnings.push(warning.clone());
        if finished.task.cell == 1 {
            record.target.settings.insert("shared_buffers".to_owned(), "2GB".to_owned());
            record.plan.sessions = 64;
        }
    }
    let shown_badge = badge(&study);
    assert_eq!(shown_badge.tone, Tone::Warn);
    assert_eq!(shown_badge.text, "all runs valid, 16 of 16 disturbed");
    let shown = text(&view(&study), 200);
    for row in ["setting: shared_buffers  ", "plan: sessions  "] {
        assert!(shown.contains(row), "{row}: {shown}");
    }
    // Common properties are named, too.
    assert!(shown.contains("riops 0."), "{shown}");
    let ids: Vec<_> = charts::charts(&view(&study)).into_iter().map(|chart| chart.id).collect();
    assert_eq!(ids, ["study-main", "study-runs"]);
}

#[test]
fn disturbed_runs_are_noted_with_their_cells() {
    let mut study = example::nodes(2);
    assert!(!view(&study).notes.iter().any(|note| note.contains("disturbed")));
    let (kind, text) = (WarningKind::ForeignCpu, "other processes used the CPU".to_owned());
    let warning = Warning { kind, stage: None, text };
    let mut runs = study.finished.iter_mut().filter(|run| run.task.cell == 1);
    let record = runs.next().unwrap().result.as_mut().unwrap();
    record.verdict.warnings.push(warning);
    let names: Vec<String> = view(&study).cells.iter().map(|cell| cell.name.clone()).collect();
    let [one, two, three] = names.as_slice() else { panic!("{names:?}") };
    let note = format!("1 of 6 runs was disturbed ({one}: 0 of 2, {two}: 1 of 2, {three}: 0 of 2)");
    assert!(view(&study).notes.contains(&note), "{:?}", view(&study).notes);
}

#[test]
fn an_incomplete_experiment_is_shown_as_far_as_it_is() {
    let mut study = example::nodes(6);
    study.finished.truncate(4);
    let result = view(&study);
    assert_eq!(result.notes[0], "incomplete: 14 runs of 18 not run yet");
    assert!(page(&result).contains("incomplete"));
    study.finished.clear();
    let empty = view(&study);
    assert!(charts::charts(&empty).is_empty() && text(&empty, 80).contains("0 of 18 runs"));
    assert!(!page(&empty).is_empty() && csv(&empty).unwrap().lines().count() == 1);
}

#[test]
fn texts_of_an_experiment_have_no_meaning_in_a_page_in_markdown_or_in_a_spreadsheet() {
    let hostile = "=1+2|`<img src=x onerror=alert(1)></script>@all";
    let mut study = example::nodes(3);
    study.experiment.name = hostile.to_owned();
    study.experiment.description = Some(hostile.to_owned());
    study.experiment.axes[0].name = hostile.to_owned();
    study.experiment.axes[0].values[0] = hostile.to_owned();
    study.experiment.cells[0].values[0] = hostile.to_owned();
    study.finished[1].result = Err(hostile.to_owned());
    let view = view(&study);
    let page = page(&view);
    assert!(!page.contains("<img") && !page.contains("onerror=alert(1)></script"));
    assert!(page.contains("&lt;img"));
    let markdown = findings_markdown(&experiment(&view));
    assert!(!markdown.contains("<img") && !markdown.contains("@all"), "{markdown}");
    let csv = csv(&view).unwrap();
    assert!(!csv.contains(",=1+2") && csv.contains("'=1+2"), "{csv}");
}

#[test]
fn json_and_csv_have_the_figures_with_their_units_in_the_names() {
    let view = view(&example::nodes(6));
    let parsed: serde_json::Value = serde_json::from_str(&json_text(&view).unwrap()).unwrap();
    let figure = &parsed["cells"][2]["stages"][0]["figures"][0];
    assert_eq!(figure["figure"], "transactions_per_s");
    assert_eq!(figure["against_baseline"]["outcome"], "faster");
    for entry in Figure::ALL {
        assert_eq!(serde_json::to_value(entry).unwrap(), entry.as_str());
    }
    let csv = csv(&view).unwrap();
    let header = csv.lines().next().unwrap();
    assert!(
        header.starts_with("experiment_id,experiment,cell,level,stage,usable_runs"),
        "{header}"
    );
    assert!(csv.contains("server-set=\"") || csv.contains("server-set=headless"), "{csv}");
}

#[test]
fn every_chart_becomes_an_image() {
    for study in
        [example::memory_to_disk(3), example::saturation(Search::Rate), example::ab(4, 1.05)]
    {
        let view = view(&study);
        let images = png(&view).unwrap();
        assert_eq!(images.len(), experiment(&view).results.charts().count());
        assert!(images.iter().all(|image| image.bytes.starts_with(b"\x89PNG")));
    }
}

#[test]
fn an_ab_test_draws_its_runs_and_the_latencies_of_both_variants() {
    let findings = experiment(&view(&example::ab(4, 1.1)));
    let of_runs =
        findings.results.charts().find(|chart| chart.id == "study-variants-0-runs").unwrap();
    let Content::Points { series, .. } = &of_runs.plot.content else { panic!() };
    let runs: Vec<_> = series.iter().map(|side| (side.label.as_str(), side.points.len())).collect();
    assert_eq!(runs, [("a.toml", 8), ("b.toml", 8)]);
    let ids: Vec<_> = findings.results.charts().map(|chart| chart.id.as_str()).collect();
    assert_eq!(
        ids,
        ["study-main", "study-runs", "study-variants-0-runs", "study-variants-0-percentiles"]
    );
}

#[test]
fn a_lower_rate_of_pings_is_a_longer_round_trip() {
    let mut study = example::ab(4, 0.8);
    assert_eq!(view(&study).round_trip, None, "the workload has other statements");
    for cell in &mut study.experiment.cells {
        let plan = Plan { work: PingRun::default().into(), sessions: 2, ..cell.plan.clone() };
        cell.plan = plan;
    }
    let result = view(&study);
    let time = result.round_trip.unwrap();
    // 4/5 of the rate is 5/4 of the time.
    assert!((time.change_us / time.a_us - 0.25).abs() < 0.02, "{time:?}");
    let interval = time.interval.unwrap();
    assert!(interval.low <= time.change_us && time.change_us <= interval.high, "{time:?}");
    let text = text(&result, 200);
    assert!(text.contains("  round trip   +"), "{text}");
    study.experiment.cells[1].plan.sessions = 3;
    assert_eq!(view(&study).round_trip, None, "the rates have other numbers of sessions");
}
