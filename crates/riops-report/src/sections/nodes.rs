//! The nodes of a cluster: throughput, errors and outages of each, and how evenly the work was spread.

use indexmap::IndexMap;

use crate::document::Document;
use crate::latency::latency_cell;
use crate::latency::latency_named;
use crate::sections::failures::outage_text;
use crate::sections::{items_of_stages, seconds, several, stage_name};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::record::Record;
use riops_model::record::{NodeRecord, OutageRecord, StageRecord};
use riops_model::units::format::count;
use riops_model::units::format::{duration_us, joined, number_of, percent, rate};

/// A shorter time without a successful transaction is not reported.
const PAUSE_S: f64 = 1.0;
/// From this share on, one node does all the work.
const ALL_SHARE: f64 = 0.9;

/// Events of a node that are named.
const EVENTS_MAX: usize = 4;

/// The most active events of the active session history of each node.
pub(crate) fn activity(document: &mut Document, stage: &StageRecord) {
    let mut nodes: IndexMap<&str, Vec<String>> = IndexMap::new();
    for event in &stage.activity {
        let text = format!("{} {} {}", event.component, event.event, rate(event.active));
        nodes.entry(&event.node).or_default().push(text);
    }
    let lines = nodes.into_iter().map(|(node, events)| {
        format!("{node}: active {}", joined(events.iter().take(EVENTS_MAX), " · "))
    });
    document.lines("history", lines);
}

/// The nodes, one per line, if there are several.
pub(crate) fn nodes(document: &mut Document, stage: &StageRecord) {
    let nodes = &stage.session_loop.nodes;
    if nodes.len() < 2 {
        return;
    }
    let width = nodes.iter().map(|node| node.node.len()).max().unwrap_or(0);
    let label = if stage.session_loop.response_us.is_some() { "service " } else { "" };
    let texts = nodes.iter().flat_map(|node| {
        let outages = node.outages.iter().map(outage);
        std::iter::once(node_text(node, width, label)).chain(outages)
    });
    document.lines("nodes", texts);
    let placed: u64 = nodes.iter().map(|node| node.sessions).sum();
    let elsewhere = u64::from(stage.sessions).saturating_sub(placed);
    if elsewhere > 0 {
        document.line("", format!("{elsewhere} sessions were on none of these nodes at the end"));
    }
    document.lines("", balance_text(stage));
}

/// Returns the text of a node. `label` precedes the percentiles of the service time.
fn node_text(node: &NodeRecord, width: usize, label: &str) -> String {
    let mut parts = vec![
        format!("{:<width$}  {}", node.node, number_of(node.sessions, "session")),
        format!("{} tx/s", rate(node.transactions_per_s)),
        percent(node.share),
    ];
    if let Some(latency) = &node.service_us {
        let named = |key| Some(format!("{label}{key} {}", latency_named(latency, key)?));
        parts.extend(["p50", "p99"].into_iter().filter_map(named));
    }
    if node.down {
        parts.push("DOWN at the end".to_owned());
    }
    let pause = node.longest_pause_s.filter(|&pause| {
        pause >= PAUSE_S && node.sessions + node.transactions > 0 && node.outages.is_empty()
    });
    parts.extend(
        pause.map(|pause| format!("{} without a successful transaction", duration_us(pause * 1e6))),
    );
    let counts = [(node.errors, "error"), (node.retries, "retry"), (node.reconnects, "reconnect")];
    let occurred = counts.into_iter().filter(|(value, _)| *value > 0);
    parts.extend(occurred.map(|(value, what)| number_of(value, what)));
    if node.unknown_commits > 0 {
        // The other counts include only the measurement.
        let unknown = number_of(node.unknown_commits, "unknown commit");
        parts.push(format!("{unknown} including warm-up and drain"));
    }
    let usage = node.usage.unwrap_or_default();
    let cpu = usage.cpu_cores.map(percent);
    parts.extend(
        cpu.map(|cpu| format!("{cpu} of one CPU in yb-tserver (not its PostgreSQL backends)")),
    );
    for (figure, what) in [
        (usage.storage_reads_per_s, "storage reads/s"),
        (usage.storage_writes_per_s, "storage writes/s"),
    ] {
        parts.extend(figure.map(|figure| format!("{} {what}", rate(figure))));
    }
    parts.join(" · ")
}

fn outage(outage: &OutageRecord) -> String {
    let (below_s, until_s) = (outage.below_90_percent_s, outage.until_90_percent_s);
    let text = outage_text(outage.without_success_s, below_s, until_s);
    let is_lasting = below_s.is_some_and(|seconds| seconds > 0.0) && until_s.is_none();
    format!("{}: {text}{}", outage.sqlstate, if is_lasting { ", not recovered" } else { "" })
}

/// How evenly the work was spread; a warning if one node did all of it.
fn balance_text(stage: &StageRecord) -> Option<String> {
    let answering = stage.session_loop.nodes.iter().filter(|node| !node.down);
    let idle = answering.clone().count().saturating_sub(1);
    let busiest = answering.max_by_key(|node| node.transactions);
    match busiest.filter(|node| idle > 0 && node.share >= ALL_SHARE) {
        Some(busiest) => Some(format!(
            "WARNING: {} executed {} of the transactions, {idle} other available nodes almost none: list several hosts, use --spread round-robin, or connect through a load-balancing service",
            busiest.node,
            percent(busiest.share)
        )),
        None => stage.session_loop.imbalance.map(|imbalance| {
            format!("imbalance {imbalance:.2} (the busiest node's share divided by an even share)")
        }),
    }
}

/// The nodes of a cluster, if there are several.
pub(crate) fn table(record: &Record) -> Table {
    let nodes = items_of_stages(record, |stage| several(&stage.session_loop.nodes));
    Table::from_items("nodes", nodes, |(stage, node)| {
        let down = if node.down { " (down)" } else { "" };
        let outages = node.outages.iter().map(|outage| outage.without_success_s);
        let pause = outages.chain(node.longest_pause_s).max_by(f64::total_cmp);
        let usage = node.usage.unwrap_or_default();
        let latency = |key| latency_cell(node.service_us.as_ref(), key);
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("node"), format!("{}{down}", node.node).into()),
            (text_column("placement"), node.placement.clone().into()),
            (number_column("sessions"), count(node.sessions).into()),
            (number_column("tx/s"), rate(node.transactions_per_s).into()),
            (number_column("share"), Cell::share(Some(node.share)).with_bar(node.share)),
            (number_column("service p50"), latency("p50")),
            (number_column("service p99"), latency("p99")),
            (number_column("errors"), count(node.errors).into()),
            (number_column("retries"), count(node.retries).into()),
            (number_column("reconnects"), count(node.reconnects).into()),
            (number_column("longest stall"), seconds(pause)),
            (number_column("CPU of yb-tserver"), Cell::share(usage.cpu_cores)),
            (number_column("storage reads/s"), usage.storage_reads_per_s.map(rate).into()),
            (number_column("storage writes/s"), usage.storage_writes_per_s.map(rate).into()),
        ]
    })
}

/// The active session history of the nodes.
pub(crate) fn activity_table(record: &Record) -> Table {
    let events = items_of_stages(record, |stage| &stage.activity);
    let table = Table::from_items("active session history", events, |(stage, event)| {
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("node"), event.node.as_str().into()),
            (text_column("component"), event.component.as_str().into()),
            (text_column("class"), event.class.as_str().into()),
            (text_column("event"), event.event.as_str().into()),
            (number_column("active"), rate(event.active).into()),
        ]
    });
    table.with_note("mean number of sessions or requests. Waits of YSQL for the tserver contain the time of its events: do not add them up.")
}
