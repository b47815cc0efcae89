//! The tables of `cbc` runs: steps, SELECTs, storage validation, best rates.

use super::validation;
use crate::document::Headline;
use crate::latency::latency_cell;
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::device;
use riops_model::plan::CbcRun;
use riops_model::record::{DeviceUse, Record, StageRecord};
use riops_model::units::format::{bytes_text, duration_us, joined, number_of, percent, rate};

/// Below this rate, in MB/s, the device was idle: the caches served the step.
const IDLE_MB_S: f64 = 1.0;
/// Minimum length of a step for which the busy share of the device is reported, in seconds: the kernel counts busy time
/// in units of a few milliseconds.
const BUSY_SECONDS_MIN: f64 = 0.1;

/// Returns the highest device rate of the steps that are long enough, or else the rate of the longest step, as
/// `riops runs list` does. Returns the time of all steps if the device was idle or is unknown.
pub(super) fn figure(record: &Record) -> Option<Headline> {
    let steps = || record.stages.iter().filter(|stage| stage.statement.is_some());
    steps().next()?;
    let seconds: f64 = steps().map(|stage| stage.seconds).sum();
    let (time, counted_steps) =
        (duration_us(seconds * 1e6), number_of(steps().count() as u64, "step"));
    let devices = || steps().filter_map(|stage| Some((stage, device(stage)?)));
    let long = devices().filter(|(stage, _)| stage.seconds >= validation::SECONDS_MIN);
    let best = long.max_by(|a, b| mb_s(a.1).total_cmp(&mb_s(b.1)));
    let label =
        if best.is_some() { "highest device rate" } else { "device rate of the longest step" };
    let longest = || devices().max_by(|a, b| a.0.seconds.total_cmp(&b.0.seconds));
    let best = best.or_else(longest).filter(|(_, usage)| mb_s(usage) >= IDLE_MB_S);
    let Some((stage, usage)) = best else {
        let label = "time of all steps".to_owned();
        return Some(Headline { label, value: time, unit: String::new(), detail: counted_steps });
    };
    let DeviceUse { read_mb_s, write_mb_s, .. } = usage;
    let rates = format!("{read_mb_s:.1} MB/s read, {write_mb_s:.1} MB/s written");
    Some(Headline {
        label: label.to_owned(),
        value: rate(mb_s(usage)),
        unit: "MB/s".to_owned(),
        detail: format!("{}: {rates} · {counted_steps} in {time}", stage.name),
    })
}

/// Both rates of a device together, in MB/s.
fn mb_s(device: &DeviceUse) -> f64 {
    device.read_mb_s + device.write_mb_s
}

/// The steps; without rows if there are none.
pub(super) fn steps(record: &Record) -> Table {
    let steps = || record.stages.iter().filter(|stage| stage.statement.is_some());
    let longest_s = steps().map(|stage| stage.seconds).fold(f64::MIN_POSITIVE, f64::max);
    let has_device = record.stages.iter().any(|stage| device(stage).is_some());
    let table = Table::from_items("steps", steps(), |stage| {
        let device = device(stage);
        let busy = device.filter(|_| stage.seconds >= BUSY_SECONDS_MIN);
        let iops = device.map(|device| rate(device.reads_per_s + device.writes_per_s));
        let time = Cell::from(duration_us(stage.seconds * 1e6));
        let cpu = stage.statement.as_ref().and_then(|statement| statement.process_cpu_share);
        [
            (text_column("step"), stage.name.as_str().into()),
            (number_column("time"), time.with_bar(stage.seconds / longest_s)),
            (number_column("read"), Cell::decimal(device.map(|device| device.read_mb_s))),
            (number_column("write"), Cell::decimal(device.map(|device| device.write_mb_s))),
            (number_column("total"), Cell::decimal(device.map(mb_s))),
            (number_column("IOPS"), iops.into()),
            (number_column("busy"), Cell::share(busy.map(|device| device.busy_share))),
            (number_column("WAL"), Cell::decimal(stage.io.as_ref().and_then(|io| io.wal_mb_s))),
            (number_column("CPU"), Cell::share(cpu)),
            (text_column("time spent"), time_spent(stage).into()),
            (text_column("notes"), notes(stage).into()),
        ]
    });
    table.with_note(if has_device {
        "device rates and WAL in MB/s; CPU of the server process that ran the step"
    } else {
        "WAL in MB/s; the device of the server's data is on another machine or cannot be observed"
    })
}

/// How the server process of a stage spent its time, as text; empty if it was not sampled.
fn time_spent(stage: &StageRecord) -> String {
    let kinds = stage
        .probes
        .as_ref()
        .and_then(validation::Time::from_samples)
        .map_or_else(Vec::new, validation::Time::significant);
    joined(kinds.into_iter().map(|(kind, share)| format!("{kind} {}", percent(share))), ", ")
}

/// The checkpoints and the temporary files of a step.
fn notes(stage: &StageRecord) -> String {
    let mut notes = Vec::new();
    if let count @ 1.. = validation::checkpoints(stage) {
        notes.push(format!("checkpoints {count}"));
    }
    let counters = stage.database.as_ref().and_then(|database| database.before.zip(database.after));
    let temp_bytes =
        counters.map_or(0, |(before, after)| after.temp_bytes.saturating_sub(before.temp_bytes));
    if temp_bytes > 0 {
        notes.push(format!("temporary files {}", bytes_text(temp_bytes)));
    }
    notes.join("; ")
}

/// The SELECTs that several sessions repeated; without rows if there are none.
pub(super) fn selects(record: &Record) -> Table {
    let loops = record.stages.iter().filter(|stage| stage.statement.is_none());
    Table::from_items("SELECTs", loops, |stage| {
        let (device, service) = (device(stage), stage.session_loop.service_us.as_ref());
        [
            (text_column("SELECT"), validation::script_of(stage).unwrap_or_default().into()),
            (number_column("-c"), stage.sessions.to_string().into()),
            (number_column("tx/s"), rate(stage.throughput.transactions_per_s).into()),
            (number_column("p50"), latency_cell(service, "p50")),
            (number_column("p99"), latency_cell(service, "p99")),
            (number_column("max"), latency_cell(service, "max")),
            (number_column("read"), Cell::decimal(device.map(|device| device.read_mb_s))),
            (number_column("write"), Cell::decimal(device.map(|device| device.write_mb_s))),
            (number_column("busy"), Cell::share(device.map(|device| device.busy_share))),
        ]
    })
}

/// The rates of the scripts as shares of the device's maximum.
pub(super) fn storage(record: &Record) -> Table {
    Table::from_items("storage", validation::lines(record), |line| {
        [
            (text_column("script"), line.script.into()),
            (text_column("metric"), line.metric.into()),
            (number_column("best"), Cell::decimal(Some(line.best_mb_s))),
            (number_column("maximum"), Cell::decimal(Some(line.max_mb_s))),
            (number_column("% max"), Cell::share(Some(line.share())).with_bar(line.share())),
            (text_column("bottleneck"), line.bottleneck.unwrap_or_default().into()),
        ]
    })
}

/// Returns the best rates of each server, script and size over several runs of `cbc`.
pub(super) fn best(records: &[Record]) -> Option<Table> {
    let mut best_rates: Vec<(&str, &str, f64, [f64; 3])> = Vec::new();
    let runs =
        records.iter().filter_map(|record| Some((record, record.plan.work.get::<CbcRun>()?)));
    for (record, work) in runs.clone() {
        let host = record.client.machine.host.as_str();
        for stage in &record.stages {
            let (Some(script), Some(device)) = (validation::script_of(stage), device(stage)) else {
                continue;
            };
            let rates = [device.read_mb_s, device.write_mb_s, mb_s(device)];
            let is_same = |known: &&mut (&str, &str, f64, _)| {
                (known.0, known.1, known.2) == (host, script, work.size_gb)
            };
            match best_rates.iter_mut().find(is_same) {
                Some((.., best)) => {
                    best.iter_mut().zip(rates).for_each(|(best, rate)| *best = best.max(rate));
                }
                None => best_rates.push((host, script, work.size_gb, rates)),
            }
        }
    }
    best_rates.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    let table = Table::from_items(
        "best rates",
        best_rates,
        |(server, script, size, [read, write, both])| {
            [
                (text_column("server"), server.into()),
                (text_column("script"), script.into()),
                (number_column("size GB"), size.to_string().into()),
                (number_column("read MB/s"), Cell::decimal(Some(read))),
                (number_column("write MB/s"), Cell::decimal(Some(write))),
                (number_column("R+W MB/s"), Cell::decimal(Some(both))),
            ]
        },
    );
    (runs.count() > 1).then(|| table.with_note("mean rate of a step, best of all runs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_cbc;

    #[test]
    fn the_figure_is_the_highest_rate_of_long_steps_or_the_rate_of_the_longest_step() {
        let mut record = example_cbc();
        let shown = |record: &Record| {
            let figure = figure(record).unwrap();
            (figure.label, figure.value)
        };
        assert_eq!(shown(&record), ("highest device rate".to_owned(), "680".to_owned()));
        for stage in &mut record.stages {
            stage.seconds /= 100.0;
        }
        let short = ("device rate of the longest step".to_owned(), "480".to_owned());
        assert_eq!(shown(&record), short);
        let uses = record.stages.iter_mut().filter_map(|stage| stage.io.as_mut());
        uses.for_each(|io| io.device = None);
        assert_eq!(shown(&record).0, "time of all steps");
    }
}
