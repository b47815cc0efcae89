//! The tables of a search: the levels of the closed and of the open loop, and the fitted law.

use crate::subjects::experiment::cells::{failed, figure_title, missed, reach, runs_text};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::Figure;
use riops_model::stats::{FittedValue, ScalingLaw};
use riops_model::study::Level;
use riops_model::study::evaluation::{CellView, FigureView, LevelView, StudyView};
use riops_model::units::format::{percent, rate};

/// Figures of a level that have a column if they were measured.
const FIGURES: [Figure; 5] =
    [Figure::P95Us, Figure::P99Us, Figure::ServerCpus, Figure::ClientCpus, Figure::ErrorsPerS];

/// Returns the tables of all cells.
pub(in crate::subjects::experiment) fn tables(view: &StudyView) -> Vec<Table> {
    let mut tables = Vec::new();
    for cell in &view.cells {
        let name = if view.cells.len() > 1 { format!(": {}", cell.name) } else { String::new() };
        let is_closed = |level: &&LevelView| matches!(level.level, Level::Sessions(_));
        let (closed, open): (Vec<_>, Vec<_>) = cell.levels.iter().partition(is_closed);
        if !closed.is_empty() {
            tables.push(levels(view, cell, &closed, format!("Closed loop{name}")));
        }
        let law = cell
            .saturation
            .as_ref()
            .and_then(|saturation| saturation.sessions.as_ref()?.law.as_ref());
        tables.extend(law.map(|law| law_table(law, format!("Scalability law{name}"))));
        if !open.is_empty() {
            tables.push(levels(view, cell, &open, format!("Open loop{name}")));
        }
    }
    tables
}

fn levels(view: &StudyView, cell: &CellView, levels: &[&LevelView], title: String) -> Table {
    let stage = view.main_stage;
    let is_open = matches!(levels.first().map(|level| level.level), Some(Level::Rate { .. }));
    let has_rows = view.throughput() == Figure::RowsPerS;
    let shown = |figure: &Figure| {
        let mut values = levels.iter().filter_map(|level| level.group.figure(stage, *figure));
        if *figure == Figure::ErrorsPerS {
            values.any(|measured| measured.estimate.value > 0.0)
        } else {
            values.next().is_some()
        }
    };
    let figures: Vec<Figure> = FIGURES.into_iter().filter(shown).collect();
    let title_of = |figure: &Figure| match (figure, is_open) {
        (Figure::P95Us | Figure::P99Us, true) => format!("response {}", figure.heading()),
        (Figure::ServerCpus, _) => match figure_title(view, stage, *figure) {
            title if title == "CPU" => figure.heading().to_owned(),
            title => title,
        },
        _ => figure.heading().to_owned(),
    };
    let first = levels.first().and_then(|level| each_session(view, level));
    Table::from_items(title, levels, |level| {
        let measured = |figure: Figure| level.group.figure(stage, figure);
        let text = |figure: Figure| -> Cell { measured(figure).map(FigureView::text).into() };
        let reach = measured(view.main).and_then(|figure| reach(&figure.estimate));
        let rows = if has_rows { text(Figure::RowsPerS) } else { "".into() };
        let per_session = each_session(view, level);
        let efficiency =
            per_session.zip(first).map(|(per_session, first)| percent(per_session / first));
        let mut row = vec![
            (
                number_column(if is_open { "rate" } else { "sessions" }),
                level_text(level.level).into(),
            ),
            (number_column("runs"), runs_text(&level.group).into()),
            (number_column("TPS"), text(view.main)),
            (number_column("±").optional(), reach.into()),
            (number_column(Figure::RowsPerS.heading()), rows),
            (number_column("sustained"), sustained(cell, level.level).into()),
            (number_column("per session").optional(), per_session.map(rate).into()),
            (number_column("efficiency"), efficiency.into()),
        ];
        row.extend(figures.iter().map(|figure| {
            let column = number_column(title_of(figure));
            let is_optional = matches!(figure, Figure::ServerCpus | Figure::ClientCpus);
            (if is_optional { column.optional() } else { column }, text(*figure))
        }));
        row.push((text_column(""), marks(cell, level).into()));
        row
    })
}

/// Transactions per second of one session of a closed loop.
fn each_session(view: &StudyView, level: &LevelView) -> Option<f64> {
    let Level::Sessions(sessions) = level.level else {
        return None;
    };
    let per_s = level.group.figure(view.main_stage, view.main)?.estimate.value;
    (sessions > 0).then(|| per_s / f64::from(sessions))
}

fn level_text(level: Level) -> String {
    match level {
        Level::Sessions(sessions) => sessions.to_string(),
        Level::Rate { per_s, .. } => format!("{}/s", rate(per_s)),
    }
}

/// Special properties of a level. A rate that misses a threshold is not sustained, which has its own column.
fn marks(cell: &CellView, level: &LevelView) -> String {
    let mut words = Vec::new();
    if let Level::Sessions(sessions) = level.level {
        let conclusion =
            cell.saturation.as_ref().and_then(|saturation| saturation.sessions.as_ref());
        let is_saturated = conclusion.is_some_and(|conclusion| conclusion.saturation == sessions);
        words.extend(is_saturated.then(|| "saturation".to_owned()));
        let is_best = conclusion.is_some_and(|conclusion| conclusion.best == sessions);
        words.extend(is_best.then(|| "best".to_owned()));
        words.extend(missed(&level.group));
    }
    words.extend(failed(&level.group));
    words.join(", ")
}

/// Whether the runs at a rate sustained it.
fn sustained(cell: &CellView, level: Level) -> Option<String> {
    let (Some(saturation), Level::Rate { per_s, .. }) = (&cell.saturation, level) else {
        return None;
    };
    let searched = saturation.rate.iter().flat_map(|rate| &rate.rates);
    let has_rate = |result: &&riops_model::study::search::rate::RateResult| {
        (result.rate_per_s / per_s - 1.0).abs() < 1e-6
    };
    let result = saturation.ladder.iter().chain(searched).find(has_rate)?;
    Some(match (result.sustained, result.runs) {
        (met, runs) if met == runs => "yes".to_owned(),
        (0, _) => "NO".to_owned(),
        (met, runs) => format!("{met} of {runs} runs"),
    })
}

fn law_table(law: &ScalingLaw, title: String) -> Table {
    let share = |value: f64| format!("{value:.5}");
    let extrapolated = |is: bool| if is { "extrapolated" } else { "" }.to_owned();
    let mut rows = vec![
        row("throughput of one session (λ)", &law.lambda, rate, String::new()),
        row("contention (σ)", &law.sigma, share, String::new()),
        row("coherency delay (κ)", &law.kappa, |value| format!("{value:.7}"), String::new()),
    ];
    let (knee, peak) = (law.is_knee_extrapolated(), law.is_peak_extrapolated());
    let knee =
        law.knee.map(|fitted| row("knee, in sessions", &fitted, sessions, extrapolated(knee)));
    let n90 = law.n90.map(|fitted| {
        let text = match peak {
            true if fitted.value <= law.largest_n => "from an extrapolated peak".to_owned(),
            is_beyond => extrapolated(is_beyond),
        };
        row("90% of the maximum (N90), in sessions", &fitted, sessions, text)
    });
    let peak_at = match law.peak_at {
        Some(fitted) => row("peak (N*), in sessions", &fitted, sessions, extrapolated(peak)),
        None => vec![
            "peak (N*), in sessions".into(),
            "none".into(),
            law.peak_at_least.map(|least| format!("from {} on", sessions(least))).into(),
            "the fitted curve does not fall".into(),
        ],
    };
    let maximum = law.maximum_per_s;
    let maximum = maximum.map(|fitted| row("maximum, in TPS", &fitted, rate, extrapolated(peak)));
    rows.extend([knee, n90, Some(peak_at), maximum].into_iter().flatten());
    let check = &law.residuals;
    let columns = [
        text_column("parameter"),
        number_column("value"),
        text_column("95% interval").optional(),
        text_column(""),
    ];
    Table::new(title, columns, rows).with_note(format!(
        "X(N) = λN / (1 + σ(N-1) + κN(N-1)), fitted to {} runs at {} levels, R² {:.4}; {check}",
        law.points, law.levels, law.r_squared
    ))
}

pub(super) fn sessions(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { rate(value) }
}

/// The interval of a fitted value.
pub(super) fn fitted_interval(fitted: &FittedValue, text: impl Fn(f64) -> String) -> String {
    match fitted.high {
        Some(high) => format!("{} to {}", text(fitted.low), text(high)),
        None => format!("from {} on", text(fitted.low)),
    }
}

fn row(name: &str, fitted: &FittedValue, text: impl Fn(f64) -> String, note: String) -> Vec<Cell> {
    let value = if fitted.value == 0.0 { "0".to_owned() } else { text(fitted.value) };
    vec![name.into(), value.into(), fitted_interval(fitted, text).into(), note.into()]
}
