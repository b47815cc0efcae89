//! Words that several workloads share.

use super::super::block::Block;
use super::super::format::{count, duration_us, percent};
use super::super::model::Summary;
use crate::plan::Distribution;
use crate::record::{SessionOperation, SessionRecord, StageRecord};

/// Which keys, where that is not all alike.
pub(super) fn keys_text(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => String::new(),
        other => format!("; keys {other}"),
    }
}

pub(super) fn rows_text(rows: u64) -> String {
    format!("{} row{}", count(rows), if rows == 1 { "" } else { "s" })
}

/// Lines of names and values below each other, behind the label `result`.
pub(super) fn named_values(block: &mut Block, lines: &[(String, String)]) {
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (position, (name, value)) in lines.iter().enumerate() {
        let label = if position == 0 { "result" } else { "" };
        block.line(label, &format!("{name:<width$}  {value}"));
    }
}

/// What ysql-bench counts.
pub(super) struct Counted {
    /// Its name in the singular.
    pub(super) unit: &'static str,
    pub(super) number: u64,
    /// How many of them one session has done.
    pub(super) of_session: fn(&SessionOperation) -> u64,
    /// The size of a batch in words, where there are batches.
    pub(super) batch: Option<String>,
    pub(super) non_transactional: bool,
}

/// ysql-bench's block of results.
pub(super) fn ysql_bench(block: &mut Block, summary: &Summary<'_>, counted: &Counted) {
    let (stage, plan) = (summary.stage, &summary.record.plan);
    let &Counted { unit, number, .. } = counted;
    let database_s = stage.database_s.unwrap_or(0.0);
    // With a pipeline a session is in the database several times at once.
    let at_most = f64::from(stage.sessions) * f64::from(plan.pipeline);
    let mut lines = vec![
        ("wallclock time".to_owned(), seconds(stage.seconds)),
        (
            "total database time".to_owned(),
            format!(
                "{}, {} of wallclock time ({} if every session were always in the database)",
                seconds(database_s),
                percent(database_s / stage.seconds.max(f64::MIN_POSITIVE)),
                percent(at_most)
            ),
        ),
        (format!("{unit}s per session"), per_session(stage, counted)),
        ("sessions".to_owned(), count(stage.sessions.into())),
    ];
    if let Some(batch) = &counted.batch {
        lines.push(("batch".to_owned(), batch.clone()));
    }
    lines.push((format!("total {unit}s"), count(number)));
    lines.push(("non-transactional".to_owned(), counted.non_transactional.to_string()));
    if number > 0 {
        let each = |seconds: f64| duration_us(seconds * 1e6 / number as f64);
        lines.push((format!("wallclock time per {unit}"), each(stage.seconds)));
        lines.push((format!("database time per {unit}"), each(database_s)));
    }
    if let Some(bytes) = stage.session_loop.row_bytes {
        lines.push(("bytes of a row".to_owned(), count(bytes)));
    }
    named_values(block, &lines);
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.6} s")
}

/// What each session has: from the fewest to the most; on average, where the sessions are too many to
/// be stored one by one.
fn per_session(stage: &StageRecord, counted: &Counted) -> String {
    let own =
        |session: &SessionRecord| session.operations.iter().map(counted.of_session).sum::<u64>();
    let each = || stage.session_loop.session_details.iter().map(own);
    match each().min().zip(each().max()) {
        None => format!("about {}", count(counted.number / u64::from(stage.sessions.max(1)))),
        Some((least, most)) if least == most => count(least),
        Some((least, most)) => format!("{} to {}", count(least), count(most)),
    }
}
