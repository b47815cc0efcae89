//! The tables of `cbc` runs in the HTML report: steps, SELECTs, storage validation, best rates.

use super::super::super::format::{bytes_text, duration_us, number_of, percent, rate};
use super::super::super::model::{cpu_text, device};
use super::super::super::page::Figure;
use super::super::super::page::table::{Cell, Table, loop_table};
use super::validation;
use crate::plan::CbcRun;
use crate::record::{DeviceUse, Record, StageRecord};

/// Lower rates of the device are those of an idle one, because the caches served the step, in MB/s.
const IDLE_MB_S: f64 = 1.0;

/// Returns the highest rate of the device in a step, as `riops runs list` does: of those that are long enough, if
/// there are any, otherwise of the longest one. Returns the time of all steps if the device was idle or is unknown.
pub(super) fn figure(record: &Record) -> Option<Figure> {
    let steps = || record.stages.iter().filter(|stage| stage.statement.is_some());
    steps().next()?;
    let seconds: f64 = steps().map(|stage| stage.seconds).sum();
    let (time, number) = (duration_us(seconds * 1e6), number_of(steps().count() as u64, "step"));
    let devices = || steps().filter_map(|stage| Some((stage, device(stage)?)));
    let mb_s = |found: &DeviceUse| found.read_mb_s + found.write_mb_s;
    let long = devices().filter(|(stage, _)| stage.seconds >= validation::SECONDS_MIN);
    let best = long.max_by(|a, b| mb_s(a.1).total_cmp(&mb_s(b.1)));
    let (label, best) = match best {
        Some(best) => ("highest device rate", Some(best)),
        None => (
            "device rate of the longest step",
            devices().max_by(|a, b| a.0.seconds.total_cmp(&b.0.seconds)),
        ),
    };
    Some(match best.filter(|(_, found)| mb_s(found) >= IDLE_MB_S) {
        Some((stage, found)) => Figure {
            label: label.to_owned(),
            value: rate(mb_s(found)),
            unit: "MB/s".to_owned(),
            detail: format!(
                "{}: {:.1} MB/s read, {:.1} MB/s written · {number} in {time}",
                stage.name, found.read_mb_s, found.write_mb_s
            ),
        },
        None => Figure {
            label: "time of all steps".to_owned(),
            value: time,
            unit: String::new(),
            detail: number,
        },
    })
}

/// Returns the tables of one record.
pub(super) fn of(record: &Record) -> Vec<Table> {
    [steps(record), selects(record), storage(record)].into_iter().flatten().collect()
}

fn steps(record: &Record) -> Option<Table> {
    let steps: Vec<_> = record.stages.iter().filter(|stage| stage.statement.is_some()).collect();
    let longest = steps.iter().map(|stage| stage.seconds).fold(0.0, f64::max);
    let row = |stage: &&StageRecord| {
        let device = device(stage);
        let statement = stage.statement.as_ref();
        vec![
            Cell::word(stage.name.clone()),
            Cell::word(validation::time_spent(stage)),
            Cell::number(duration_us(stage.seconds * 1e6)).with_bar(stage.seconds / longest),
            Cell::mb_s(device.map(|device| device.read_mb_s)),
            Cell::mb_s(device.map(|device| device.write_mb_s)),
            Cell::mb_s(device.map(|device| device.read_mb_s + device.write_mb_s)),
            Cell::number(device.map_or_else(
                || "–".to_owned(),
                |device| rate(device.reads_per_s + device.writes_per_s),
            )),
            Cell::share(device.map(|device| device.busy_share)),
            Cell::mb_s(stage.io.as_ref().and_then(|io| io.wal_mb_s)),
            Cell::share(statement.and_then(|statement| statement.process_cpu_share)),
        ]
    };
    (!steps.is_empty()).then(|| {
        Table::new(
            "Steps",
            [
                "step",
                "time spent",
                "time",
                "read MB/s",
                "write MB/s",
                "total MB/s",
                "IOPS",
                "busy",
                "WAL MB/s",
                "CPU",
            ],
            2,
            steps.iter().map(row).collect(),
        )
        .with_note(
            "read and write: rates of the device; CPU: of the server process that ran the step",
        )
    })
}

fn selects(record: &Record) -> Option<Table> {
    let table = loop_table(record.stages.iter().filter(|stage| stage.statement.is_none()));
    (!table.rows.is_empty())
        .then_some(Table { title: "SELECTs with several sessions".to_owned(), ..table })
}

/// Returns the table of the storage validation.
fn storage(record: &Record) -> Option<Table> {
    let limit = record.target.disk_limit.as_ref()?;
    let machine = &record.client.machine;
    let db = validation::dataset_bytes(record).map_or_else(|| "–".to_owned(), bytes_text);
    let row = |line: &validation::Line| {
        vec![
            Cell::word(cpu_text(record)),
            Cell::word(bytes_text(machine.memory_bytes)),
            Cell::word(db.clone()),
            Cell::word(line.script),
            Cell::word(line.metric.as_str()),
            Cell::word(line.bottleneck.clone().unwrap_or_default()),
            Cell::number(format!("{:.1}", line.best_mb_s)),
            Cell::number(format!("{:.1}", line.max_mb_s)),
            Cell::number(percent(line.share())).with_bar(line.share()),
        ]
    };
    let rows: Vec<_> = validation::lines(record).iter().map(row).collect();
    (!rows.is_empty()).then(|| { Table::new("Storage validation", [
            "CPU",
            "RAM",
            "DB",
            "script",
            "metric",
            "bottleneck",
            "best MB/s",
            "max MB/s",
            "% max",
        ], 6, rows).with_note(format!(
            "max: {}, measured with {} on {}: sequential requests of 1 MiB, 16 in flight; target 90%",
            limit.device,
            limit.tool,
            limit.measured_at.strftime("%F")
        )) })
}

/// Returns the best rates of each server, script and size over several runs of `cbc`.
pub(super) fn best(records: &[Record]) -> Option<Table> {
    let mut found: Vec<(String, &'static str, f64, [f64; 3])> = Vec::new();
    for record in records {
        let Some(work) = record.plan.work.get::<CbcRun>() else {
            continue;
        };
        for stage in &record.stages {
            let (Some(script), Some(device)) = (validation::script_of(stage), device(stage)) else {
                continue;
            };
            let host = &record.client.machine.host;
            let rates = [device.read_mb_s, device.write_mb_s, device.read_mb_s + device.write_mb_s];
            let known = found.iter_mut().find(|(server, known, size, _)| {
                server == host && *known == script && *size == work.size_gb
            });
            match known {
                Some((.., best)) => {
                    for (best, rate) in best.iter_mut().zip(rates) {
                        *best = best.max(rate);
                    }
                }
                None => found.push((host.clone(), script, work.size_gb, rates)),
            }
        }
    }
    found.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)).then(a.2.total_cmp(&b.2)));
    let runs = records.iter().filter(|record| record.plan.work.get::<CbcRun>().is_some()).count();
    let rows = found
        .into_iter()
        .map(|(server, script, size, [read, write, both])| {
            vec![
                Cell::word(server),
                Cell::word(script),
                Cell::number(size.to_string()),
                Cell::mb_s(Some(read)),
                Cell::mb_s(Some(write)),
                Cell::mb_s(Some(both)),
            ]
        })
        .collect();
    (runs > 1).then(|| {
        let head = ["server", "script", "size GB", "read MB/s", "write MB/s", "R+W MB/s"];
        Table::new("Best rates", head, 2, rows).with_note("mean rate of a step, best of all runs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example_cbc;

    #[test]
    fn the_figure_is_the_highest_rate_of_the_long_steps_or_that_of_the_longest_step() {
        let mut record = example_cbc();
        let of = |record: &Record| {
            let figure = figure(record).unwrap();
            (figure.label, figure.value)
        };
        assert_eq!(of(&record), ("highest device rate".to_owned(), "680".to_owned()));
        for stage in &mut record.stages {
            stage.seconds /= 100.0;
        }
        let short = ("device rate of the longest step".to_owned(), "480".to_owned());
        assert_eq!(of(&record), short);
        let uses = record.stages.iter_mut().filter_map(|stage| stage.io.as_mut());
        uses.for_each(|io| io.device = None);
        assert_eq!(of(&record).0, "time of all steps");
    }
}
