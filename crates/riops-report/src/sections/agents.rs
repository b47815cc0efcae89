//! The clients of a merged run: how much each of them did, its limits and its clock.

use crate::document::Document;
use crate::latency::latency_cell;
use crate::sections::stage_name;
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::record::{AgentRecord, Record};
use riops_model::units::format::{count, duration_us, joined, rate};

/// Writes the clients, one per line.
pub(crate) fn agents(document: &mut Document, record: &Record) {
    if let Some(table) = table(record) {
        document.table(table);
        document.gap();
    }
}

/// Returns the clients with their share of each stage; `None` if the run had only one client.
pub(crate) fn table(record: &Record) -> Option<Table> {
    let rows = record.agents.iter().flat_map(|agent| {
        let stages = agent.stages.iter().enumerate().map(Some);
        // An agent without a result has a row, too.
        let lost = agent.stages.is_empty().then_some(None);
        stages.chain(lost).map(move |stage| (agent, stage))
    });
    let table = Table::from_items("agents", rows, |(agent, of_stage)| {
        let (position, stage) = of_stage.unzip();
        let name =
            position.and_then(|position| Some(stage_name(record, record.stages.get(position)?)));
        let cpu = stage.and_then(|stage| stage.client_cpu.as_ref());
        let limits = cpu.map(|cpu| joined(cpu.limits.iter().map(|limit| limit.text()), "; "));
        let latency = stage.and_then(|stage| stage.latency_us.as_ref());
        [
            (number_column("agent"), agent.number.to_string().into()),
            (text_column("host"), agent.host.clone().into()),
            (text_column("stage"), name.filter(|name| !name.is_empty()).into()),
            (number_column("sessions"), stage.map(|stage| count(stage.sessions.into())).into()),
            (number_column("transactions"), stage.map(|stage| count(stage.transactions)).into()),
            (number_column("tx/s"), stage.map(|stage| rate(stage.transactions_per_s)).into()),
            (number_column("p99"), latency_cell(latency, "p99")),
            (number_column("busiest worker"), Cell::share(cpu.map(|cpu| cpu.share_of_client))),
            (text_column("limits"), limits.filter(|limits| !limits.is_empty()).into()),
            (
                number_column("start"),
                position.and_then(|position| start(record, agent, position)).into(),
            ),
            (number_column("clock"), clock(agent).into()),
            (text_column("remark"), agent.failure.clone().into()),
        ]
    });
    let has_clock = record.agents.iter().any(|agent| agent.clock.is_some());
    let clock = if has_clock { "; clock: offset to the store's clock ± uncertainty" } else { "" };
    let first = record.agents.iter().find(|agent| !agent.stages.is_empty())?.number;
    let note = format!(
        "start: time after the first agent{clock}; wait events, and rows from page cache and device: only sessions of agent {first}"
    );
    Some(table.with_note(note))
}

/// Returns how long after the first agent this one started to measure a stage.
fn start(record: &Record, agent: &AgentRecord, position: usize) -> Option<String> {
    let started_at = |agent: &AgentRecord| agent.stages.get(position)?.started_at;
    let late =
        started_at(agent)?.duration_since(record.agents.iter().filter_map(started_at).min()?);
    Some(format!("+{}", duration_us(late.as_secs_f64() * 1e6)))
}

fn clock(agent: &AgentRecord) -> Option<String> {
    let clock = agent.clock?;
    let sign = if clock.offset_s < 0.0 { "-" } else { "+" };
    let [offset, reach] = [clock.offset_s.abs(), clock.uncertainty_s].map(|s| duration_us(s * 1e6));
    Some(format!("{sign}{offset} ± {reach}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use crate::render::text::text;
    use riops_model::record::{AgentStage, ClientCpu, ClientLimit, ClockRecord, LatencySummary};

    fn agent(position: u32, ms: i64) -> AgentRecord {
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
            ..AgentStage::default()
        };
        AgentRecord {
            number: position,
            host: format!("client-{position}"),
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
