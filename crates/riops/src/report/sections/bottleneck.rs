//! The bottleneck of a run, and the figures of machine, client and device.

use super::super::block::Block;
use super::super::format::{duration_us, percent, rate};
use super::super::model::{Bottleneck, Summary};
use crate::record::{ClientLimit, DeviceUse};

/// The bottleneck in a sentence.
pub(in crate::report) fn bottleneck(block: &mut Block, summary: &Summary<'_>) {
    if !summary.has_bottleneck() {
        return;
    }
    let text = match summary.bottleneck() {
        Bottleneck::Client => client_text(summary),
        Bottleneck::Locks => "locks: the sessions waited for each other".to_owned(),
        Bottleneck::SharedCpu => {
            "CPU: all processors of this machine, shared by server and client".to_owned()
        }
        Bottleneck::Device => format!(
            "the device of the server's data: at {} of its measured maximum",
            percent(summary.device_load().unwrap_or_default())
        ),
        Bottleneck::BusyDevice => {
            "unknown: the device of the server's data was always busy, and its maximum was not measured (riops doctor --disk)".to_owned()
        }
        Bottleneck::Rate => "none: the requested rate was achieved".to_owned(),
        Bottleneck::Waiting => "none found: the sessions waited for replies; more sessions (-c) may increase throughput".to_owned(),
        Bottleneck::ServerOrNetwork => "not the client: the server or the network".to_owned(),
    };
    block.line("bottleneck", &text);
}

/// Which resources of the client were exhausted, and what helps.
fn client_text(summary: &Summary<'_>) -> String {
    let limits = summary.stage.client_cpu.as_ref().map_or(&[][..], |cpu| &cpu.limits);
    // Records of earlier versions judge only the workers.
    let limits = if limits.is_empty() { &[ClientLimit::Worker] } else { limits };
    let texts: Vec<_> = limits.iter().map(|limit| limit.text()).collect();
    let more_workers_help =
        limits.iter().all(|limit| matches!(limit, ClientLimit::Worker | ClientLimit::PollLoop));
    let advice = if more_workers_help { "more workers (-j) or " } else { "" };
    format!("the client: {}; use {advice}more client machines", texts.join(", and "))
}

/// What machine, client and device did meanwhile.
pub(in crate::report) fn resources(block: &mut Block, summary: &Summary<'_>) {
    machine(block, summary);
    client(block, summary);
    let device = summary.stage.io.as_ref().and_then(|io| io.device.as_ref());
    if let Some(device) = device {
        block.line("device", &device_text(device, summary.device_load()));
    }
}

fn device_text(device: &DeviceUse, load: Option<f64>) -> String {
    let load = load
        .map_or_else(String::new, |load| format!(", {} of its measured maximum", percent(load)));
    format!(
        "{} {} busy, {} reads/s ({:.1} MB/s), {} writes/s ({:.1} MB/s){load}",
        device.name,
        percent(device.busy_share),
        rate(device.reads_per_s),
        device.read_mb_s,
        rate(device.writes_per_s),
        device.write_mb_s
    )
}

/// CPU of the client's machine by its users. The kernel, and processes of other containers, are the rest.
fn machine(block: &mut Block, summary: &Summary<'_>) {
    let stage = summary.stage;
    let Some(busy) = stage.machine_busy_share else {
        return;
    };
    let available_s = stage.seconds * summary.record.client.machine.cpus as f64;
    let mut parts = Vec::new();
    let mut rest = busy;
    let mut part = |name: &str, share: Option<f64>| {
        if let Some(share) = share {
            rest -= share;
            parts.push(format!("{name} {}", percent(share)));
        }
    };
    part("client", summary.client_machine_share());
    part("server", stage.server_cpu_s.map(|cpu_s| cpu_s / available_s.max(f64::MIN_POSITIVE)));
    part("other processes", stage.neighbors.as_ref().map(|neighbors| neighbors.cpu_share));
    let stolen = stage.neighbors.as_ref().and_then(|neighbors| neighbors.steal_share);
    part("stolen", stolen.filter(|&share| share >= 0.001));
    let name = if stage.neighbors.is_some() { "kernel" } else { "others" };
    if rest >= 0.01 {
        parts.push(format!("{name} {}", percent(rest)));
    }
    block.line("machine", &format!("{} of CPU busy: {}", percent(busy), parts.join(", ")));
}

fn client(block: &mut Block, summary: &Summary<'_>) {
    let Some(cpu) = &summary.stage.client_cpu else {
        return;
    };
    let each = cpu
        .us_per_transaction
        .map_or_else(String::new, |us| format!(", {} CPU per transaction", duration_us(us)));
    let share = percent(cpu.share_of_client);
    let waited = cpu.run_queue_share.filter(|&share| share >= 0.01);
    let waited =
        waited.map_or_else(String::new, |share| format!(", waited for a CPU {}", percent(share)));
    block.line("client", &format!("busiest worker {share} of one CPU{waited}{each}"));
    if let Some(share) = cpu.throttled_share.filter(|&share| share > 0.0) {
        block.line(
            "",
            &format!("CPU quota of the cgroup exhausted in {} of the periods", percent(share)),
        );
    }
    if let Some(share) = cpu.connector_share {
        block.line("", &format!("busiest connecting thread {} of one CPU", percent(share)));
    }
    if let Some(stalls) = &cpu.away_us {
        let (p99, max) = (duration_us(stalls.p99), duration_us(stalls.max));
        block.line("", &format!("poll-loop stalls p99 {p99} · max {max}"));
    }
}
