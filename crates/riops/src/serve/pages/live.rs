//! The live view of a run in progress. The script of the page follows it; without a script, the page shows the state
//! when it was loaded.

use axum::extract::{Path, State};
use serde::Serialize;

use super::super::app::{Shared, layout, see_other};
use super::super::failure::Answer;
use super::super::query::Query;
use crate::figure::Figure;
use crate::figure::{Statistic, per_second};
use crate::plan::Stop;
use crate::plan::WorkPlan;
use crate::record::{LivePhase, LiveRun, LiveStage, Point};
use crate::report::ABSENT;
use crate::units::format::{count, duration_us, number_of, rate};

/// The values of `live.html`.
#[derive(Serialize)]
struct Live {
    id: String,
    title: String,
    label: Option<String>,
    label_href: String,
    server: String,
    setup: String,
    phase: &'static str,
    /// `transactions` or `rows`: what the main figure counts.
    figure: &'static str,
    rate: String,
    /// Whether an interval of a loop of sessions has ended.
    has_points: bool,
    tiles: Vec<Tile>,
    stages: Vec<Stage>,
    notices: Vec<String>,
}

/// A figure with the name by which the script finds it.
#[derive(Serialize)]
struct Tile {
    name: &'static str,
    label: &'static str,
    value: String,
}

#[derive(Serialize)]
struct Stage {
    name: String,
    transactions: String,
    rows: String,
    errors: String,
    seconds: String,
}

/// The live view, or the page of the stored run if it has ended.
pub(in crate::serve) async fn live(State(app): Shared, Path(id): Path<String>) -> Answer {
    let runs = app.feed.current().await;
    if let Some(run) = runs.iter().find(|run| run.id.to_string() == id) {
        let frame = layout(format!("riops: {} in progress", run.title), "");
        return app.page("live.html", frame, view(run));
    }
    let id = app.stored.with(move |store| Ok(store.id(&id)?)).await?;
    Ok(see_other(format!("/runs/{id}")))
}

fn view(run: &LiveRun) -> Live {
    let last = run.stages.last().and_then(|stage| stage.last.as_ref());
    let work = WorkPlan::default_of(&run.workload);
    let throughput = work.as_ref().map_or(Figure::RowsPerS, Figure::throughput_of);
    let rate_of = |point: &Point| per_second(throughput.count_in(point), point).map(rate);
    Live {
        id: run.id.to_string(),
        title: run.title.clone(),
        label_href: run
            .label
            .as_ref()
            .map(|label| Query::default().with("label", label).after("/"))
            .unwrap_or_default(),
        label: run.label.clone(),
        server: run.server.clone(),
        setup: setup(run),
        phase: run.phase.text(),
        figure: if throughput == Figure::RowsPerS { "rows" } else { "transactions" },
        rate: last.and_then(rate_of).unwrap_or_else(|| ABSENT.to_owned()),
        has_points: last.is_some(),
        tiles: tiles(last),
        stages: run.stages.iter().map(stage).collect(),
        notices: run.notices.iter().cloned().collect(),
    }
}

/// Sessions, end of the measurement, machine and start in a line.
fn setup(run: &LiveRun) -> String {
    let stop = match run.stop {
        Stop::DurationS(seconds) => format!("{seconds} s"),
        Stop::Transactions(transactions) => format!("{} transactions", count(transactions)),
        Stop::Rows(rows) => format!("{} rows", count(rows)),
    };
    let parts = [
        Some(number_of(run.sessions.into(), "session")),
        run.rate_per_s.map(|per_s| format!("{} transactions/s requested", rate(per_s))),
        // The time of a statement that runs once has no limit.
        Some(stop).filter(|_| run.phase != LivePhase::Step),
        Some(format!("from {}", run.host)),
        Some(run.started_at.strftime("%F %T UTC").to_string()),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The latencies of the last interval: response times if there is a rate.
fn tiles(last: Option<&Point>) -> Vec<Tile> {
    let tile = |statistic: &'static Statistic| {
        let us = last.and_then(|point| statistic.of_users(point));
        Tile {
            name: statistic.key,
            label: statistic.name,
            value: us.map_or_else(|| ABSENT.to_owned(), duration_us),
        }
    };
    [50.0, 99.0, 100.0].into_iter().filter_map(Statistic::percentile).map(tile).collect()
}

fn stage(stage: &LiveStage) -> Stage {
    let is_statement = stage.statement_s.is_some();
    let counted = |value: u64| if is_statement { String::new() } else { count(value) };
    Stage {
        name: stage.name.clone(),
        transactions: counted(stage.totals.transactions),
        rows: counted(stage.totals.rows),
        errors: counted(stage.totals.errors),
        seconds: format!("{:.0} s", stage.statement_s.unwrap_or(stage.totals.seconds)),
    }
}
