//! What limited the run, with the figures of machine, client and device.

use super::super::block::Block;
use super::super::format::{duration_us, percent, rate};
use super::super::model::{Limit, Summary};

pub(in crate::report) fn limit(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    let shared = summary.record.client.shares_machine_with_server;
    block.line(
        "limit",
        match summary.limit() {
            Limit::Client => "the client: a worker had no idle time; use more workers (-j) or more machines",
            Limit::Locks => "locks: the sessions waited for each other",
            Limit::SharedCpu => "CPU: all processors of this machine, shared by server and client",
            Limit::Device => "the device of the server's data",
            Limit::Rate => "the rate that was asked for, and it was kept",
            Limit::Waiting => "none was used up: the sessions waited for replies; more sessions (-c) may give more",
            Limit::ServerOrNetwork => "not the client: the server or the network between",
        },
    );
    if let Some(busy) = stage.machine_busy_share {
        let client = summary.client_machine_share().unwrap_or(0.0).min(busy);
        let rest = if shared { "server and others" } else { "others" };
        block.line(
            "  machine",
            &format!(
                "{} of its CPU busy: client {}, {rest} {}",
                percent(busy),
                percent(client),
                percent(busy - client)
            ),
        );
    }
    if let Some(cpu) = &stage.client_cpu {
        let each = cpu
            .us_per_transaction
            .map_or_else(String::new, |us| format!(", {} CPU per transaction", duration_us(us)));
        block.line(
            "  client",
            &format!("busiest worker {} of one CPU{each}", percent(cpu.share_of_client)),
        );
        if let Some(away) = &cpu.away_us {
            let text = format!(
                "p99 {} · max {} between two looks at the sockets",
                duration_us(away.p99),
                duration_us(away.max)
            );
            block.line("", &text);
        }
    }
    if let Some(device) = stage.io.as_ref().and_then(|io| io.device.as_ref()) {
        block.line(
            "  device",
            &format!(
                "{} {} busy, {} reads/s ({:.1} MB/s), {} writes/s ({:.1} MB/s)",
                device.name,
                percent(device.busy_share),
                rate(device.reads_per_s),
                device.read_mb_s,
                rate(device.writes_per_s),
                device.write_mb_s
            ),
        );
    }
}
