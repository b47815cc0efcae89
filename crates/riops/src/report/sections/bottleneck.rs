//! The bottleneck of a run, and the figures of machine, client and device.

use super::super::block::Block;
use super::super::format::{duration_us, percent, rate};
use super::super::model::{Bottleneck, Summary};
use crate::record::{DeviceUse, IoRecord};

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
    if let Some(io) = &summary.stage.io {
        devices(block, io);
    }
}

/// Each disk of the server with its roles. Records of earlier releases have only the device of the data.
fn devices(block: &mut Block, io: &IoRecord) {
    if let (Some(device), true) = (&io.device, io.devices.is_empty()) {
        block.line("device", &format!("{} {}", device.name, activity(device)));
    }
    for (position, disk) in io.devices.iter().enumerate() {
        let label = if position == 0 { "device" } else { "" };
        let (name, roles) = (&disk.usage.name, disk.roles.join(", "));
        block.line(label, &format!("{name} ({roles}) {}", activity(&disk.usage)));
    }
}

fn activity(device: &DeviceUse) -> String {
    let queue = device
        .queue_depth
        .map_or_else(String::new, |requests| format!(", queue depth {requests:.1}"));
    format!(
        "{} busy{queue}, {} reads/s ({:.1} MB/s), {} writes/s ({:.1} MB/s)",
        percent(device.busy_share),
        rate(device.reads_per_s),
        device.read_mb_s,
        rate(device.writes_per_s),
        device.write_mb_s
    )
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::DiskUse;
    use crate::report::example_record;

    fn shown(change: impl Fn(&mut IoRecord)) -> String {
        let mut record = example_record();
        let io = record.stages[0].io.as_mut().unwrap();
        change(io);
        let mut block = Block::new(120);
        devices(&mut block, io);
        block.finish()
    }

    #[test]
    fn each_disk_has_a_line_with_its_roles_and_its_queue_depth() {
        let text = shown(|io| {
            let usage = io.device.clone().unwrap();
            let disk = |name: &str, roles: &[&str]| DiskUse {
                roles: roles.iter().map(|&role| role.to_owned()).collect(),
                usage: DeviceUse {
                    name: name.to_owned(),
                    queue_depth: Some(1.52),
                    ..usage.clone()
                },
            };
            io.devices = vec![disk("sda", &["data", "temporary"]), disk("sdb", &["wal"])];
        });
        let rest = "2.1% busy, queue depth 1.5, 2.00 reads/s (0.1 MB/s), 31.0 writes/s (1.3 MB/s)";
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        let expected =
            [format!("device       sda (data, temporary) {rest}"), format!("sdb (wal) {rest}")];
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_record_without_roles_shows_the_device_of_the_data() {
        let text = shown(|_| {});
        assert!(text.contains("device       vda 2.1% busy, 2.00 reads/s"), "{text}");
    }
}
