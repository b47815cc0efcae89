//! The bottleneck of a run, and the figures of machine, client and device.

use crate::document::Document;
use crate::sections::waits::{meaning, named};
use crate::sections::{items_of_stages, several, stage_name};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::{Bottleneck, DeviceLoad, Summary};
use riops_model::record::Record;
use riops_model::record::{Blocker, ClientLimit, DeviceUse, Sampled, TimePart};
use riops_model::units::format::{
    bytes_text, count, duration_us, joined, number_of, percent, rate,
};

/// Wait events that are named as the bottleneck.
const WAITS_MAX: usize = 3;

/// Share of all processors from which on other processes and the hypervisor are named beside server and client.
const OTHERS_SHARE: f64 = 0.05;

/// From this share of its speed at the start on, the speed of a processor did not change: the measurements of it vary as much.
const STABLE_SPEED: f64 = 0.95;

/// The bottleneck in a sentence.
pub(crate) fn bottleneck(document: &mut Document, summary: &Summary<'_>) {
    if !summary.has_bottleneck() {
        return;
    }
    let text = match summary.bottleneck() {
        Bottleneck::Client => client_text(summary),
        Bottleneck::Locks => {
            let holders = summary.lock_holders_wait().map_or_else(String::new, |(part, share)| {
                format!("; those that held them waited for {} in {} of their time", part.name(), percent(share))
            });
            format!("locks: the sessions waited for {}{holders}", blockers(summary))
        }
        Bottleneck::ServerCpu => server_cpu_text(summary),
        Bottleneck::SharedCpu if summary.record.client.server_may_be_here => {
            "CPU: all processors of this machine, on which the server may be, too".to_owned()
        }
        Bottleneck::SharedCpu if summary.foreign_machine_share().is_none() => {
            "CPU: all processors of this machine; it is not known which processes used them".to_owned()
        }
        Bottleneck::SharedCpu => {
            let machine = &summary.record.client.machine;
            let used = |share: Option<f64>| {
                share.map_or_else(String::new, |share| format!(" ({})", machine.cpu_text(share)))
            };
            let server = used(summary.server_machine_share());
            let client = used(summary.client_machine_share());
            let others = summary.foreign_machine_share().filter(|share| *share >= OTHERS_SHARE);
            let users = others.map_or_else(
                || format!("server{server} and client{client}"),
                |_| format!("server{server}, client{client} and others{}", used(others)),
            );
            format!("CPU: all processors of this machine, shared by {users}")
        }
        Bottleneck::ForeignCpu => {
            let machine = &summary.record.client.machine;
            let share = summary.foreign_machine_share().unwrap_or_default();
            let neighbors = summary.stage.neighbors.as_ref();
            let stolen = neighbors.and_then(|others| others.steal_share).filter(|&share| share > 0.0);
            let used = machine.cpu_of_all_text(share - stolen.unwrap_or_default());
            let stolen = stolen.map_or_else(String::new, |share| {
                format!(", and the hypervisor stole {}", machine.cpu_text(share))
            });
            format!("CPU: all processors of this machine; other processes used {used}{stolen}")
        }
        Bottleneck::Waits => waits_text(summary),
        Bottleneck::Pool | Bottleneck::Network => network_text(summary),
        Bottleneck::ThinkTime => think_text(summary),
        Bottleneck::Device => full_device_text(summary),
        Bottleneck::BusyDevice if outdated_device(summary).is_some() => {
            outdated_device(summary).unwrap_or_default()
        }
        Bottleneck::BusyDevice => {
            "unknown: a device of the server was always busy, and its maximum was not measured (riops doctor --disk)".to_owned()
        }
        Bottleneck::Rate => "none: the requested rate was achieved".to_owned(),
        Bottleneck::Waiting if summary.record.target.pooler.is_some() => {
            "none found: the sessions waited for replies through a pooler or proxy".to_owned()
        }
        Bottleneck::Waiting => "none found: the sessions waited for replies; more sessions (-c) may increase throughput".to_owned(),
        Bottleneck::ServerOrNetwork => "not the client: the server or the network".to_owned(),
    };
    document.line("bottleneck", &text);
}

/// The waits of the server for anything but locks.
fn waits_text(summary: &Summary<'_>) -> String {
    let (share, events) = summary.server_waits().unwrap_or_default();
    let time = summary.transaction_time();
    let active = time.map_or(0.0, |time| time.busy_share(&[TimePart::Active]));
    if active > share {
        return format!(
            "the server, active without a wait event for {} of the time of a transaction: its processes neither ran nor waited for a processor (memory, page faults, an extension)",
            percent(active)
        );
    }
    let meaning = events.first().and_then(|event| meaning(&event.event));
    let meaning = meaning.map_or_else(String::new, |meaning| format!("; {meaning}"));
    let named = named(events, WAITS_MAX);
    format!("waits of the server, {} of the session time: {named}{meaning}", percent(share))
}

/// How long a transaction waits while the server does nothing for it.
fn network_text(summary: &Summary<'_>) -> String {
    let what = match (summary.bottleneck(), &summary.record.target.pooler) {
        (Bottleneck::Pool, _) => format!(
            "the pooler: about {} to the server for {}",
            number_of(summary.pool().unwrap_or_default(), "connection"),
            number_of(summary.stage.sessions.into(), "session")
        ),
        (_, Some(_)) => "the pooler or the network".to_owned(),
        (_, None) => "the network, or a proxy".to_owned(),
    };
    format!(
        "{what}; {}",
        of_transaction(summary, TimePart::Network, "while the server did nothing for it")
    )
}

fn think_text(summary: &Summary<'_>) -> String {
    format!(
        "none: the script waits (\\sleep); {}",
        of_transaction(summary, TimePart::Think, "of think time")
    )
}

/// `5.13 ms of 5.55 ms per transaction while …`.
fn of_transaction(summary: &Summary<'_>, part: TimePart, what: &str) -> String {
    let time = summary.transaction_time();
    let (us, whole_us) = time.map_or((0.0, 0.0), |time| (time.part_us(part), time.us));
    format!("{} of {} per transaction {what}", duration_us(us), duration_us(whole_us))
}

/// Who held the locks for which the sessions waited.
fn blockers(summary: &Summary<'_>) -> String {
    let blockers = summary.stage.probes.as_ref().map_or(&[][..], |probes| &probes.blockers);
    let (own, others): (Vec<_>, Vec<_>) = blockers.iter().partition(|blocker| blocker.is_own);
    let share = |group: &[&Blocker]| group.iter().map(|blocker| blocker.share).sum::<f64>();
    let named = others
        .iter()
        .map(|blocker| format!("{} ({}) {}", blocker.name, blocker.state, percent(blocker.share)));
    let named = joined(named, ", ");
    match share(&own) {
        _ if blockers.is_empty() => "each other, or for other sessions".to_owned(),
        _ if others.is_empty() => "each other".to_owned(),
        0.0 => format!("other sessions: {named}"),
        share => format!("each other {}, and for other sessions: {named}", percent(share)),
    }
}

/// Which limit of the server's processors was reached.
fn server_cpu_text(summary: &Summary<'_>) -> String {
    let limits = summary.record.target.limits.as_ref();
    if summary.is_server_throttled() {
        let cpus = limits.and_then(|limits| limits.cgroup_cpus);
        let quota = cpus.map_or_else(String::new, |cpus| format!(" of {cpus:.2} processors"));
        let share = percent(summary.stage.server_throttled_share.unwrap_or_default());
        return format!("CPU: the server's quota{quota} was exhausted in {share} of the periods");
    }
    let Some(limits) = limits else {
        return "CPU of the server".to_owned();
    };
    let (cpus, machine) = (limits.cpus, summary.record.client.machine.counted_cpus());
    format!("CPU: the processors that the server may use, {cpus} of {machine}")
}

/// The device with the highest load.
fn full_device_text(summary: &Summary<'_>) -> String {
    let devices = summary.devices().into_iter();
    let fullest = devices.max_by(|a, b| a.highest_load().total_cmp(&b.highest_load()));
    fullest.map_or_else(String::new, |device| {
        let (name, roles, load) =
            (&device.usage.name, device.roles.join(", "), device.highest_load());
        let is_of_requests = device.load.is_some_and(|requests| requests >= load);
        let what = if is_of_requests { "" } else { " of synchronized writes (fdatasync)" };
        format!("the device {name} ({roles}): at {} of its measured maximum{what}", percent(load))
    })
}

/// The device that does more than its measured maximum.
fn outdated_device(summary: &Summary<'_>) -> Option<String> {
    let devices = summary.devices();
    let device = devices.iter().find(|device| device.is_outdated())?;
    Some(format!(
        "unknown: the device {} does more than its measured maximum, so that measurement is outdated",
        device.usage.name,
    ))
}

/// Which resources of the client were exhausted, and what helps.
fn client_text(summary: &Summary<'_>) -> String {
    let limits = summary.stage.client_cpu.as_ref().map_or(&[][..], |cpu| &cpu.limits);
    // Records of earlier versions judge only the workers.
    let limits = if limits.is_empty() { &[ClientLimit::Worker] } else { limits };
    let texts = joined(limits.iter().map(|limit| limit.text()), ", and ");
    let more_workers_help =
        limits.iter().all(|limit| matches!(limit, ClientLimit::Worker | ClientLimit::PollLoop));
    let advice = if more_workers_help { "more workers (-j) or " } else { "" };
    format!("the client: {texts}; use {advice}more client machines (--fleet)")
}

/// What machine, client and device did meanwhile.
pub(crate) fn resources(document: &mut Document, summary: &Summary<'_>) {
    machine(document, summary);
    memory(document, summary);
    let throttled = summary.stage.server_throttled_share.filter(|&share| share > 0.0).map(percent);
    let quota = |share| format!("CPU quota of its cgroup exhausted in {share} of the periods");
    document.lines("server", throttled.map(quota));
    if summary.stage.observed.is_none() {
        client(document, summary);
    }
    network(document, summary);
    devices(document, summary);
}

fn devices(document: &mut Document, summary: &Summary<'_>) {
    document.lines("device", summary.devices().iter().map(device_text));
}

/// A disk of the server with its roles. Records of earlier releases have only the device of the data.
fn device_text(device: &DeviceLoad<'_>) -> String {
    let roles = match device.roles {
        [] => String::new(),
        roles => format!(" ({})", roles.join(", ")),
    };
    let load = device.load.map(percent);
    let load = load.map_or_else(String::new, |load| format!(", {load} of its measured maximum"));
    let syncs = device.wal_syncs.filter(|(per_s, _)| *per_s >= 1.0);
    let syncs = syncs.map_or_else(String::new, |(per_s, share)| {
        let share = share.map(percent);
        let share =
            share.map_or_else(String::new, |share| format!(" ({share} of their measured maximum)"));
        format!(", {} WAL synchronizations/s{share}", rate(per_s))
    });
    format!("{}{roles} {}{load}{syncs}", device.usage.name, activity(device.usage))
}

fn activity(device: &DeviceUse) -> String {
    let queue = device.queue_depth;
    let queue = queue.map_or_else(String::new, |depth| format!(", queue depth {depth:.1}"));
    let DeviceUse { read_mb_s, write_mb_s, .. } = device;
    let reads = format!("{} reads/s ({read_mb_s:.1} MB/s)", rate(device.reads_per_s));
    let writes = format!("{} writes/s ({write_mb_s:.1} MB/s)", rate(device.writes_per_s));
    format!("{} busy{queue}, {reads}, {writes}", percent(device.busy_share))
}

/// CPU of the client's machine by its users. The kernel, and processes of other containers, are the rest.
fn machine(document: &mut Document, summary: &Summary<'_>) {
    let stage = summary.stage;
    let Some(busy) = stage.machine_busy_share else {
        return;
    };
    let machine = &summary.record.client.machine;
    let mut parts = Vec::new();
    let mut rest = busy;
    let mut part = |name: &str, share: Option<f64>| {
        if let Some(share) = share {
            rest -= share;
            parts.push(format!("{name} {}", machine.cpu_text(share)));
        }
    };
    let neighbors = stage.neighbors.as_ref();
    part("client", summary.client_machine_share());
    part("command", summary.command_machine_share());
    part("server", summary.server_machine_share());
    part("other processes", neighbors.and_then(|others| others.cpu_share));
    let unseen = neighbors.and_then(|others| others.unseen_cpu_share);
    part("processes that are not visible", unseen.filter(|&share| share >= 0.01));
    let stolen = neighbors.and_then(|others| others.steal_share);
    part("stolen", stolen.filter(|&share| share >= 0.001));
    let name = match neighbors {
        Some(_) if summary.record.client.server_may_be_here => "server or kernel",
        Some(_) if summary.record.target.pooler.is_some() => "pooler or kernel",
        Some(_) => "kernel",
        None if summary.record.client.shares_machine_with_server => {
            "server and others, not counted one by one,"
        }
        None => "others",
    };
    if rest >= 0.01 {
        parts.push(format!("{name} {}", machine.cpu_text(rest)));
    }
    let speeds = stage.probes.as_ref().map_or_else(Vec::new, Sampled::processor_speeds);
    let lowest = speeds.iter().copied().min_by(f64::total_cmp).filter(|_| speeds.len() > 1);
    let speed = lowest.map_or_else(String::new, |lowest| format!("; {}", speed_text(lowest)));
    let (busy, parts) = (machine.cpu_of_all_text(busy), parts.join(", "));
    document.line("machine", format!("CPU {busy}: {parts}{speed}"));
}

/// Memory of the server's processes.
fn memory(document: &mut Document, summary: &Summary<'_>) {
    let probes = summary.stage.probes.as_ref();
    if let Some((first, most)) = probes.and_then(Sampled::server_memory_bytes) {
        let (first, most) = (bytes_text(first), bytes_text(most));
        let text =
            format!("{most} in the server's processes ({first} at first), without shared buffers");
        document.line("memory", text);
    }
}

/// Whether processors with this share of their speed at the start kept it.
pub(crate) fn is_stable(speed: f64) -> bool {
    speed >= STABLE_SPEED
}

/// Whether the processors kept their speed, by the time of a fixed piece of work relative to the start.
pub(crate) fn speed_text(lowest: f64) -> String {
    if is_stable(lowest) {
        "CPU speed stable".to_owned()
    } else {
        format!("CPU speed fell to {}", percent(lowest))
    }
}

fn client(document: &mut Document, summary: &Summary<'_>) {
    let Some(cpu) = &summary.stage.client_cpu else {
        return;
    };
    let worker = format!("busiest worker {} of one CPU", percent(cpu.share_of_client));
    let waited = cpu.run_queue_share.filter(|&share| share >= 0.01).map(percent);
    let waited = waited.map(|share| format!("waited for a CPU {share}"));
    let cost = cpu.us_per_transaction.map(duration_us);
    let cost = cost.map(|time| format!("{time} CPU per transaction"));
    document.line("client", joined([Some(worker), waited, cost].into_iter().flatten(), ", "));
    let throttled = cpu.throttled_share.filter(|&share| share > 0.0).map(percent);
    let quota = |share| format!("CPU quota of the cgroup exhausted in {share} of the periods");
    document.lines("", throttled.map(quota));
    let connector = cpu.connector_share.map(percent);
    document
        .lines("", connector.map(|share| format!("busiest connecting thread {share} of one CPU")));
    if let Some(stalls) = &cpu.away_us {
        let [p99, max] = [stalls.p99, stalls.max].map(duration_us);
        document.line("", format!("poll-loop stalls p99 {p99} · max {max}"));
    }
}

/// The traffic of the network, if the sessions use it.
fn network(document: &mut Document, summary: &Summary<'_>) {
    let Some(used) = summary.stage.network else {
        return;
    };
    let rates = format!("{:.1} MB/s received, {:.1} MB/s sent", used.received_mb_s, used.sent_mb_s);
    let (again, all) = (count(used.retransmitted), number_of(used.segments, "TCP segment"));
    let errors = match used.errors {
        0 => String::new(),
        errors => format!(", {} with errors or dropped", number_of(errors, "packet")),
    };
    document.line("network", format!("{rates}, {again} of {all} sent again{errors}"));
}

/// CPU, blocks and bottleneck of each stage, if there are several.
pub(crate) fn table(record: &Record) -> Table {
    let stages = Summary::of_each(record);
    Table::from_items("CPU and blocks", several(&stages), |summary| {
        let io = summary.stage.io.as_ref();
        let machine = &summary.record.client.machine;
        let cpu = |share: Option<f64>| share.map(|share| machine.cpu_text(share)).into();
        [
            (text_column("stage"), summary.stage.name.as_str().into()),
            (text_column("bottleneck"), summary.bottleneck_word().into()),
            (number_column("machine CPU"), cpu(summary.stage.machine_busy_share)),
            (number_column("server"), cpu(summary.server_machine_share())),
            (number_column("client"), cpu(summary.client_machine_share())),
            (number_column("LIOPS"), io.and_then(|io| io.liops).map(rate).into()),
            (number_column("blocks per row"), io.and_then(|io| io.blocks_per_row).map(rate).into()),
            (number_column("hits"), Cell::share(io.and_then(|io| io.hit_ratio))),
            (number_column("PIOPS"), io.and_then(|io| io.piops).map(rate).into()),
            (number_column("WAL MB/s"), Cell::decimal(io.and_then(|io| io.wal_mb_s))),
        ]
    })
}

/// The disks of the server.
pub(crate) fn devices_table(record: &Record) -> Table {
    let devices = items_of_stages(record, |stage| Summary { record, stage }.devices());
    Table::from_items("devices", devices, |(stage, device)| {
        let usage = device.usage;
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("device"), usage.name.as_str().into()),
            (text_column("used for"), device.roles.join(", ").into()),
            (number_column("reads/s"), rate(usage.reads_per_s).into()),
            (number_column("read MB/s"), Cell::decimal(Some(usage.read_mb_s))),
            (number_column("writes/s"), rate(usage.writes_per_s).into()),
            (number_column("write MB/s"), Cell::decimal(Some(usage.write_mb_s))),
            (number_column("busy"), Cell::share(Some(usage.busy_share))),
            (number_column("queue depth"), Cell::decimal(usage.queue_depth)),
            (number_column("of its maximum"), Cell::share(device.load)),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::{DiskUse, IoRecord, Record};

    fn shown(change: impl Fn(&mut IoRecord)) -> String {
        let mut record = example_record();
        change(record.stages[0].io.as_mut().unwrap());
        let mut document = Document::default();
        devices(&mut document, &Summary::first_stage(&record).unwrap());
        crate::document_text(&document, 120)
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
    fn the_machine_line_shows_shares_of_all_its_processors() {
        let mut record = example_record();
        let stage = &mut record.stages[0];
        stage.machine_busy_share = Some(0.75);
        stage.counters_s = Some(10.0);
        stage.server_cpu_s = Some(20.0);
        stage.client_cpu.as_mut().unwrap().seconds = 10.0;
        let line = |record: &Record| {
            let mut document = Document::default();
            machine(&mut document, &Summary::first_stage(record).unwrap());
            crate::document_text(&document, 120)
        };
        // riops may use one of four processors; the server uses two others.
        (record.client.machine.cpus, record.client.machine.machine_cpus) = (1, Some(4));
        let text = line(&record);
        assert!(text.contains("CPU 300% of 400%: client 100%, server 200%"), "{text}");
        // Records of earlier releases do not have the number of all processors.
        (record.client.machine.cpus, record.client.machine.machine_cpus) = (4, None);
        assert_eq!(line(&record), text);
    }

    #[test]
    fn the_sessions_that_hold_the_locks_are_named() {
        let text = |blockers: &[(&str, bool, f64)]| {
            let mut record = example_record();
            let blocker = |&(name, is_own, share): &(&str, bool, f64)| Blocker {
                name: name.to_owned(),
                state: "active".to_owned(),
                is_own,
                share,
            };
            let blockers = blockers.iter().map(blocker).collect();
            record.stages[0].probes = Some(Sampled { blockers, ..Sampled::default() });
            super::blockers(&Summary::first_stage(&record).unwrap())
        };
        assert_eq!(text(&[]), "each other, or for other sessions");
        assert_eq!(text(&[("riops", true, 1.0)]), "each other");
        assert_eq!(text(&[("psql", false, 1.0)]), "other sessions: psql (active) 100%");
        let both = text(&[("riops", true, 0.25), ("psql", false, 0.75)]);
        assert_eq!(both, "each other 25%, and for other sessions: psql (active) 75%");
    }

    #[test]
    fn a_record_without_roles_shows_the_device_of_the_data() {
        let text = shown(|_| {});
        assert!(text.contains("device       vda 2.1% busy, 2.00 reads/s"), "{text}");
    }
}
