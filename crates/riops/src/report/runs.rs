//! The list of stored runs.

use super::columns::{Align, Columns};
use super::format::{duration_us, rate};
use crate::record::Validity;
use crate::store::RunSummary;

/// Last characters of a run id, which `riops runs` shows and accepts.
const ID_CHARS: usize = 8;

/// Characters of the start time: date, hour and minute.
const STARTED_CHARS: usize = 16;

/// The stored runs as a table, in lines of at most `width` columns.
#[must_use]
pub fn runs_table(runs: &[RunSummary], width: usize) -> String {
    // Without a rate in any run, all latencies are service times.
    let has_response = runs.iter().any(|run| run.response_p99_us.is_some());
    let service = if has_response { "service p99" } else { "p99" };
    let mut table = Columns::new([
        ("id", Align::Left),
        ("started (UTC)", Align::Left),
        ("workload", Align::Left),
        ("valid", Align::Left),
        ("rows/s", Align::Right),
        ("tx/s", Align::Right),
        ("response p99", Align::Right),
        (service, Align::Right),
        ("sessions", Align::Right),
        ("status", Align::Left),
        ("label", Align::Left),
        ("server", Align::Left),
    ]);
    for run in runs {
        let first = run.id.chars().count().saturating_sub(ID_CHARS);
        table.row([
            run.id.chars().skip(first).collect(),
            run.started_at.get(..STARTED_CHARS).unwrap_or(&run.started_at).replace('T', " "),
            run.title.clone(),
            valid_text(run.validity()).to_owned(),
            run.rows_per_s.map(rate).unwrap_or_default(),
            run.transactions_per_s.map(rate).unwrap_or_default(),
            run.response_p99_us.map(duration_us).unwrap_or_default(),
            run.service_p99_us.map(duration_us).unwrap_or_default(),
            Some(run.sessions)
                .filter(|sessions| *sessions > 0)
                .map(|sessions| sessions.to_string())
                .unwrap_or_default(),
            Some(run.status.clone()).filter(|status| status != "done").unwrap_or_default(),
            run.label.clone().unwrap_or_default(),
            run.server.clone(),
        ]);
    }
    table.lines(width).join("\n") + "\n"
}

/// An imported run is neither valid nor invalid.
fn valid_text(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "yes",
        Validity::Invalid => "NO",
        Validity::NotVerified => "not verified",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(service_p99_us: f64, response_p99_us: Option<f64>) -> RunSummary {
        RunSummary {
            id: "01890000-0000-7000-8000-0000000000aa".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            title: "rows".to_owned(),
            server: "postgresql 18".to_owned(),
            status: "done".to_owned(),
            valid: true,
            sessions: 2,
            rows_per_s: Some(1e6),
            transactions_per_s: Some(1e3),
            p99_us: response_p99_us.or(Some(service_p99_us)),
            service_p99_us: Some(service_p99_us),
            response_p99_us,
            ..RunSummary::default()
        }
    }

    #[test]
    fn the_list_labels_response_times_and_shows_service_times_beside_them() {
        let closed = runs_table(&[run(7_800.0, None)], usize::MAX);
        assert!(closed.contains("  p99  ") && !closed.contains("response"), "{closed}");
        let mixed = runs_table(&[run(7_800.0, Some(2_850_000.0)), run(900.0, None)], usize::MAX);
        let lines: Vec<_> = mixed.lines().collect();
        assert!(lines[0].contains("response p99  service p99"), "{mixed}");
        assert!(lines[1].contains("2.85 s      7.80 ms"), "{mixed}");
        assert!(lines[2].contains("900 µs") && !lines[2].contains(" s "), "{mixed}");
    }
}
