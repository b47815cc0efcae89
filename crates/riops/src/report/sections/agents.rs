//! The clients of a merged run: how much each of them did, its limits and its clock.

use crate::record::{AgentRecord, AgentStage, ClientLimit, Record};
use crate::report::document::Document;
use crate::report::latency::latency_named;
use crate::report::table::{Cell, Table, number, word};
use crate::units::format::{count, duration_us, rate};

/// An agent with its share of one of the stages.
struct Of<'a> {
    record: &'a Record,
    agent: &'a AgentRecord,
    /// Position of the stage, and the share; `None` if the agent has no result.
    stage: Option<(usize, &'a AgentStage)>,
}

/// The clients, one per line.
pub(in crate::report) fn agents(document: &mut Document, record: &Record) {
    if let Some(table) = table(record) {
        document.table(table);
        document.gap();
    }
}

/// The clients with their share of each stage; `None` if the run is that of one client.
pub(in crate::report) fn table(record: &Record) -> Option<Table> {
    let rows = record.agents.iter().flat_map(|agent| {
        let stages = agent.stages.iter().enumerate().map(Some);
        let lost = agent.stages.is_empty().then_some(None);
        stages.chain(lost).map(move |stage| Of { record, agent, stage })
    });
    let table = Table::of(
        "agents",
        rows,
        [
            (number("agent"), |of: &Of<'_>| of.agent.number.to_string().into()),
            (word("host"), |of| of.agent.host.clone().into()),
            (word("stage"), stage_name),
            (number("sessions"), |of| of_stage(of, |stage| count(stage.sessions.into()))),
            (number("transactions"), |of| of_stage(of, |stage| count(stage.transactions))),
            (number("tx/s"), |of| of_stage(of, |stage| rate(stage.transactions_per_s))),
            (number("p99"), |of| {
                let latency = of.stage.and_then(|(_, stage)| stage.latency_us.as_ref());
                latency.and_then(|latency| latency_named(latency, "p99")).into()
            }),
            (number("busiest worker"), |of| Cell::share(cpu(of).map(|cpu| cpu.share_of_client))),
            (word("limits"), |of| limits(of).into()),
            (number("start"), |of| start(of).into()),
            (number("clock"), clock),
            (word("remark"), |of| of.agent.failure.clone().into()),
        ],
    );
    let has_clock = record.agents.iter().any(|agent| agent.clock.is_some());
    let clock = if has_clock {
        "; clock: by how much that of the store is ahead, and how exactly this is known"
    } else {
        ""
    };
    let first = record.agents.iter().find(|agent| !agent.stages.is_empty())?.number;
    let note = format!(
        "start: after the first one{clock}; wait events, and rows from page cache and device: those of the sessions of agent {first}"
    );
    Some(table.filled()?.with_note(note))
}

fn of_stage(of: &Of<'_>, text: impl Fn(&AgentStage) -> String) -> Cell {
    of.stage.map(|(_, stage)| text(stage)).into()
}

fn stage_name(of: &Of<'_>) -> Cell {
    let several = of.record.stages.len() > 1;
    let stage = of.stage.and_then(|(position, _)| of.record.stages.get(position));
    stage.filter(|_| several).map(|stage| stage.name.clone()).into()
}

fn cpu<'a>(of: &Of<'a>) -> Option<&'a crate::record::ClientCpu> {
    of.stage?.1.client_cpu.as_ref()
}

fn limits(of: &Of<'_>) -> Option<String> {
    let limits = &cpu(of)?.limits;
    let texts: Vec<_> = limits.iter().copied().map(ClientLimit::text).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// How long after the first agent it started to measure.
fn start(of: &Of<'_>) -> Option<String> {
    let (position, stage) = of.stage?;
    let starts = of.record.agents.iter().filter_map(|agent| agent.stages.get(position)?.started_at);
    let late = stage.started_at?.duration_since(starts.min()?);
    Some(format!("+{}", duration_us(late.as_secs_f64() * 1e6)))
}

fn clock(of: &Of<'_>) -> Cell {
    let clock = of.agent.clock.map(|clock| {
        let sign = if clock.offset_s < 0.0 { "-" } else { "+" };
        let (offset, reach) = (clock.offset_s.abs() * 1e6, clock.uncertainty_s * 1e6);
        format!("{sign}{} ± {}", duration_us(offset), duration_us(reach))
    });
    clock.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ClientCpu, ClockRecord, LatencySummary};
    use crate::report::example::example_record;
    use crate::report::render::text::text;

    fn agent(number: u32, ms: i64) -> AgentRecord {
        let start: jiff::Timestamp = "2026-11-26T12:00:00Z".parse().unwrap();
        let cpu = ClientCpu {
            seconds: 1.0,
            us_per_transaction: None,
            share_of_client: 0.95,
            worker_shares: Vec::new(),
            run_queue_share: None,
            connector_share: None,
            throttled_share: None,
            away_us: None,
            limits: vec![ClientLimit::Worker],
            limited: true,
        };
        let stage = AgentStage {
            started_at: Some(start + jiff::SignedDuration::from_millis(ms)),
            seconds: 10.0,
            sessions: 4,
            transactions: 12_345,
            transactions_per_s: 1_234.5,
            latency_us: Some(LatencySummary::for_test(100.0, 900.0)),
            client_cpu: Some(cpu),
        };
        AgentRecord {
            number,
            host: format!("client-{number}"),
            clock: Some(ClockRecord { offset_s: -0.002, uncertainty_s: 0.000_2, exchanges: 20 }),
            stages: vec![stage],
            ..AgentRecord::default()
        }
    }

    #[test]
    fn agents_with_their_limits_starts_and_clocks_and_a_lost_one() {
        let failure = Some("lost: no heartbeat for 10.1 s".to_owned());
        let lost = AgentRecord {
            number: 2,
            host: "client-2".to_owned(),
            failure,
            ..AgentRecord::default()
        };
        let mut record = example_record();
        assert_eq!(table(&record), None);
        record.agents = vec![agent(0, 3), agent(1, 0), lost];
        let mut document = Document::default();
        agents(&mut document, &record);
        insta::assert_snapshot!(text(&document, 160));
    }
}
