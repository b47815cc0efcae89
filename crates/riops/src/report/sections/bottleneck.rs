//! The bottleneck of a run, and the figures of machine, client and device.

use super::super::block::Block;
use super::super::format::{duration_us, percent, rate};
use super::super::model::{Bottleneck, Summary};

/// The bottleneck in a sentence.
pub(in crate::report) fn bottleneck(block: &mut Block, summary: &Summary<'_>) {
    let text = match summary.bottleneck() {
        Bottleneck::Client => {
            "the client: a worker had no idle time; use more workers (-j) or more client machines"
        }
        Bottleneck::Locks => "locks: the sessions waited for each other",
        Bottleneck::SharedCpu => "CPU: all processors of this machine, shared by server and client",
        Bottleneck::Device => "the device of the server's data",
        Bottleneck::Rate => "none: the requested rate was achieved",
        Bottleneck::Waiting => {
            "none found: the sessions waited for replies; more sessions (-c) may increase throughput"
        }
        Bottleneck::ServerOrNetwork => "not the client: the server or the network",
    };
    block.line("bottleneck", text);
}

/// What machine, client and device did meanwhile.
pub(in crate::report) fn resources(block: &mut Block, summary: &Summary<'_>) {
    machine(block, summary);
    client(block, summary);
    let device = summary.stage.io.as_ref().and_then(|io| io.device.as_ref());
    if let Some(device) = device {
        let text = format!(
            "{} {} busy, {} reads/s ({:.1} MB/s), {} writes/s ({:.1} MB/s)",
            device.name,
            percent(device.busy_share),
            rate(device.reads_per_s),
            device.read_mb_s,
            rate(device.writes_per_s),
            device.write_mb_s
        );
        block.line("device", &text);
    }
}

fn machine(block: &mut Block, summary: &Summary<'_>) {
    let Some(busy) = summary.stage.machine_busy_share else {
        return;
    };
    let client = summary.client_machine_share().unwrap_or(0.0).min(busy);
    let others = if summary.record.client.shares_machine_with_server {
        "server and others"
    } else {
        "others"
    };
    let text = format!(
        "{} of CPU busy: client {}, {others} {}",
        percent(busy),
        percent(client),
        percent(busy - client)
    );
    block.line("machine", &text);
}

fn client(block: &mut Block, summary: &Summary<'_>) {
    let Some(cpu) = &summary.stage.client_cpu else {
        return;
    };
    let each = cpu
        .us_per_transaction
        .map_or_else(String::new, |us| format!(", {} CPU per transaction", duration_us(us)));
    let share = percent(cpu.share_of_client);
    block.line("client", &format!("busiest worker {share} of one CPU{each}"));
    if let Some(stalls) = &cpu.away_us {
        let (p99, max) = (duration_us(stalls.p99), duration_us(stalls.max));
        block.line("", &format!("poll-loop stalls p99 {p99} · max {max}"));
    }
}
