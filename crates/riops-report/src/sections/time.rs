//! Where the time of a transaction went.

use crate::document::Document;
use crate::sections::stage_name;
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::{PartTime, Summary};
use riops_model::record::Record;
use riops_model::units::format::{duration_us, joined, nearest_integer};

/// Parts with a smaller share are not named in a text.
const SHARE_MIN: f64 = 0.005;

/// The parts of the time of a transaction, the largest first.
pub(crate) fn time(document: &mut Document, summary: &Summary<'_>) {
    let Some(time) = summary.transaction_time() else {
        let needed_s = summary.seconds_for_samples();
        let text = needed_s.map(|needed_s| {
            format!(
                "not known: too few samples of the sessions; measure for at least {} s",
                nearest_integer(needed_s.ceil())
            )
        });
        document.lines("time", text);
        return;
    };
    let mut parts: Vec<&PartTime> =
        time.parts.iter().filter(|part| part.us >= SHARE_MIN * time.us).collect();
    parts.sort_by(|a, b| b.us.total_cmp(&a.us));
    // `WAL 205 µs ± 12 µs`.
    let named = parts.into_iter().map(|part| {
        let reach = reach(part).map_or_else(String::new, |reach| format!(" {reach}"));
        format!("{} {}{reach}", part.part.name(), duration_us(part.us.max(0.0)))
    });
    let what = match time.with_unsuccessful {
        _ if summary.stage.statement.is_some() => "",
        true => " per transaction, with those that failed or did not finish",
        false => " per transaction",
    };
    document.line("time", format!("{}{what}: {}", duration_us(time.us), joined(named, " · ")));
}

/// How exactly the time is known.
fn reach(part: &PartTime) -> Option<String> {
    (part.reach_us > 0.0).then(|| format!("± {}", duration_us(part.reach_us)))
}

/// The parts of the time of a transaction of each stage.
pub(crate) fn table(record: &Record) -> Table {
    let rows = Summary::of_each(record).into_iter().flat_map(|summary| {
        let time = summary.transaction_time();
        let parts = time
            .into_iter()
            .flat_map(|time| time.parts.into_iter().map(move |part| (part, time.us)));
        parts.map(move |(part, us)| (summary.stage, part, us))
    });
    let table = Table::from_items("time of a transaction", rows, |(stage, part, us)| {
        let share = (part.us / us.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("part"), part.part.name().into()),
            (number_column("time"), duration_us(part.us.max(0.0)).into()),
            (number_column("95% interval"), reach(&part).into()),
            (number_column("share"), Cell::share(Some(share)).with_bar(share)),
        ]
    });
    table.with_note("CPU: running; without scheduler statistics of the server, also waiting for a processor. The intervals include the sampling error, not the variation between runs.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::{CostRecord, ErrorEntry, Sampled, SessionTime, TimePart, WaitShare};

    /// Two sessions, 10 s, 12,000 transactions: 1,667 µs of session time each, 1,650 µs of them in the transaction.
    fn record() -> Record {
        let mut record = example_record();
        let session_time = [(TimePart::Cpu, 0.3), (TimePart::Wal, 0.5), (TimePart::Network, 0.1)];
        record.stages[0].probes = Some(Sampled {
            waits: vec![WaitShare { event: "CPU".to_owned(), share: 0.3 }],
            looks: 50,
            session_time: session_time
                .map(|(part, share)| SessionTime { part, share, reach: Some(0.03) })
                .to_vec(),
            ..Sampled::default()
        });
        record
    }

    #[test]
    fn the_parts_add_up_to_the_time_of_the_sessions() {
        let record = record();
        let time = Summary::first_stage(&record).unwrap().transaction_time().unwrap();
        assert!((time.us - 2.0 * 10.0 / 12_000.0 * 1e6).abs() < 1e-9, "{time:?}");
        let parts: Vec<_> = time.parts.iter().map(|part| (part.part, part.us.round())).collect();
        let expected = [
            (TimePart::Client, 17.0),
            (TimePart::Network, 317.0),
            (TimePart::Cpu, 500.0),
            (TimePart::Wal, 833.0),
        ];
        assert_eq!(parts, expected);
        let facts = crate::document::facts(|document| {
            super::time(document, &Summary::first_stage(&record).unwrap());
        });
        assert_eq!(
            facts[0].texts[0],
            "1.67 ms per transaction: WAL 833 µs ± 50.0 µs · CPU 500 µs ± 50.0 µs · network and queue 317 µs ± 70.7 µs · client 16.7 µs"
        );
        assert_eq!(table(&record).rows.len(), 4);
    }

    #[test]
    fn measured_cpu_time_replaces_a_smaller_sampled_one() {
        let mut record = record();
        let part_us = |record: &Record, part| {
            Summary::first_stage(record).unwrap().transaction_time().unwrap().part_us(part)
        };
        let cost = |us| Some(CostRecord { server_cpu_us: Some(us), ..CostRecord::default() });
        record.stages[0].cost = cost(600.0);
        assert!((part_us(&record, TimePart::Cpu) - 600.0).abs() < 1e-9);
        assert!((part_us(&record, TimePart::Network) - 216.7).abs() < 0.1);
        // Not more than the waits leave of the service time.
        record.stages[0].cost = cost(5_000.0);
        assert!((part_us(&record, TimePart::Cpu) - 816.7).abs() < 0.1);
        assert!(part_us(&record, TimePart::Network).abs() < 1e-6);
        record.stages[0].cost = cost(100.0);
        assert!((part_us(&record, TimePart::Cpu) - 500.0).abs() < 1e-9);
    }

    #[test]
    fn the_wait_for_a_processor_is_no_cpu_time_and_no_network() {
        let split = |cpu_us, queue_us| {
            let mut record = record();
            record.stages[0].cost = Some(CostRecord {
                server_cpu_us: Some(cpu_us),
                server_run_queue_us: Some(queue_us),
                ..CostRecord::default()
            });
            let time = Summary::first_stage(&record).unwrap().transaction_time().unwrap();
            let parts = [TimePart::Cpu, TimePart::RunQueue, TimePart::Network];
            parts.map(|part| time.part_us(part).round())
        };
        // 500 µs have no wait event; 100 µs of them are the wait for a processor.
        assert_eq!(split(400.0, 100.0), [400.0, 100.0, 317.0]);
        // A difference within the sampling error counts as CPU; a larger one is a separate part.
        assert_eq!(split(360.0, 100.0), [400.0, 100.0, 317.0]);
        assert_eq!(split(300.0, 100.0), [300.0, 100.0, 317.0]);
        let mut record = record();
        record.stages[0].cost = Some(CostRecord {
            server_cpu_us: Some(100.0),
            server_run_queue_us: Some(50.0),
            ..CostRecord::default()
        });
        let time = Summary::first_stage(&record).unwrap().transaction_time().unwrap();
        assert!((time.part_us(TimePart::Active) - 350.0).abs() < 1e-6, "{time:?}");
        // A process that wakes up to receive a message waits as well, while its session is idle.
        assert_eq!(split(450.0, 300.0), [450.0, 300.0, 67.0]);
        // At most the time without a wait event: other processes of the server wait for a processor, too.
        assert_eq!(split(450.0, 5_000.0), [450.0, 367.0, 0.0]);
    }

    #[test]
    fn the_whole_includes_what_did_not_succeed_as_the_parts_do() {
        let text = |record: &Record| {
            let facts = crate::document::facts(|document| {
                super::time(document, &Summary::first_stage(record).unwrap());
            });
            facts[0].texts[0].clone()
        };
        // 1,150 µs in transactions that succeeded, 500 µs in others.
        let mut failed = record();
        failed.stages[0].database_s = Some(13.8);
        let error = ErrorEntry { count: 20, retried: 5, attempts_s: 8.0, ..ErrorEntry::default() };
        failed.stages[0].session_loop.errors = vec![error];
        let shown = text(&failed);
        let expected = "1.67 ms per transaction, with those that failed or did not finish: WAL 833 µs ± 50.0 µs · CPU 500 µs ± 50.0 µs · network and queue 317 µs";
        assert!(shown.starts_with(expected) && shown.ends_with("client 16.7 µs"), "{shown}");
        // Most of the sessions wait in transactions that do not finish.
        let mut unfinished = record();
        unfinished.plan.schedule = riops_model::plan::Schedule::Constant { per_s: 1_200.0 };
        unfinished.stages[0].database_s = Some(8.4);
        let time = Summary::first_stage(&unfinished).unwrap().transaction_time().unwrap();
        let sum: f64 = time.parts.iter().map(|part| part.us).sum();
        assert!((time.us - 1_333.3).abs() < 0.1 && (time.us - sum).abs() < 1e-9, "{time:?}");
        assert!(text(&unfinished).starts_with("1.33 ms per transaction, with those that failed"));
    }

    #[test]
    fn with_a_rate_the_whole_is_the_service_time() {
        let mut record = record();
        record.plan.schedule = riops_model::plan::Schedule::Constant { per_s: 1_200.0 };
        let time = Summary::first_stage(&record).unwrap().transaction_time().unwrap();
        assert!((time.us - 1_650.0).abs() < 1e-9, "{time:?}");
        assert_eq!(time.part_us(TimePart::Client), 0.0);
    }

    #[test]
    fn without_enough_samples_there_is_no_split() {
        let mut record = record();
        record.stages[0].probes.as_mut().unwrap().looks = 3;
        assert_eq!(Summary::first_stage(&record).unwrap().transaction_time(), None);
        let facts = crate::document::facts(|document| {
            super::time(document, &Summary::first_stage(&record).unwrap());
        });
        assert_eq!(
            facts[0].texts[0],
            "not known: too few samples of the sessions; measure for at least 34 s"
        );
    }
}
