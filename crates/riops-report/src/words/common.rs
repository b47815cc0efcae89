//! Text that several workloads share.

use crate::document::Document;
use riops_model::figure::Summary;
use riops_model::plan::{Distribution, Protocol};
use riops_model::record::{SessionOperation, SessionRecord, StageRecord};
use riops_model::units::format::{count, duration_us, percent};

/// The distribution of the keys, if it is not uniform.
pub(super) fn keys_text(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => String::new(),
        other => format!("; keys {other}"),
    }
}

/// The unit that ysql-bench counts.
pub(super) struct Counted {
    /// Name in the singular.
    pub(super) unit: &'static str,
    pub(super) total: u64,
    /// Number done by one session.
    pub(super) of_session: fn(&SessionOperation) -> u64,
    /// The batch size as text, if there are batches.
    pub(super) batch: Option<String>,
    pub(super) non_transactional: bool,
}

/// The figures that ysql-bench reports.
pub(super) fn ysql_bench(document: &mut Document, summary: &Summary<'_>, counted: &Counted) {
    let (stage, plan) = (summary.stage, &summary.record.plan);
    let &Counted { unit, total, .. } = counted;
    let database_s = stage.database_s.unwrap_or(0.0);
    // With a pipeline, a session has several statements in the database at once.
    let at_most = f64::from(stage.sessions) * f64::from(plan.pipeline);
    let (time, share) =
        (seconds(database_s), percent(database_s / stage.seconds.max(f64::MIN_POSITIVE)));
    let database = format!("{time}, {share} of wallclock time (maximum {})", percent(at_most));
    let no_prepared = plan.protocol != Protocol::Prepared;
    let per_unit = |seconds: f64| (total > 0).then(|| duration_us(seconds * 1e6 / total as f64));
    let lines = [
        ("wallclock time".to_owned(), Some(seconds(stage.seconds))),
        ("total database time".to_owned(), Some(database)),
        (format!("{unit}s per session"), Some(per_session(stage, counted))),
        ("sessions".to_owned(), Some(count(stage.sessions.into()))),
        ("batch".to_owned(), counted.batch.clone()),
        (format!("total {unit}s"), Some(count(total))),
        ("non-transactional".to_owned(), Some(counted.non_transactional.to_string())),
        ("no prepared statements".to_owned(), Some(no_prepared.to_string())),
        (format!("wallclock time per {unit}"), per_unit(stage.seconds)),
        (format!("database time per {unit}"), per_unit(database_s)),
        ("bytes per row".to_owned(), stage.session_loop.row_bytes.map(count)),
    ];
    document.pairs("totals", lines.into_iter().filter_map(|(name, value)| Some((name, value?))));
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.6} s")
}

/// Range over all sessions; the average if the record does not contain the sessions.
fn per_session(stage: &StageRecord, counted: &Counted) -> String {
    let own =
        |session: &SessionRecord| session.operations.iter().map(counted.of_session).sum::<u64>();
    let counts = || stage.session_loop.session_details.iter().map(own);
    match counts().min().zip(counts().max()) {
        None => format!("{} on average", count(counted.total / u64::from(stage.sessions.max(1)))),
        Some((least, most)) if least == most => count(least),
        Some((least, most)) => format!("{} to {}", count(least), count(most)),
    }
}
