//! Experiments for tests: made-up records of the shape of real ones.

use crate::{example_oltp, example_record};
use riops_model::plan::OltpRun;
use riops_model::record::Histogram;
use riops_model::record::{
    ErrorEntry, NodeRecord, NodeUse, Record, ScheduleRecord, Sources, ThresholdRecord,
};
use riops_model::study::{
    AbSettings, Axis, Cell, Experiment, Finished, Goal, Level, Order, SaturationSettings, Search,
    ServerChoice, Study, Task, next,
};
use riops_model::units::Nanos;

/// Noise of the runs, in percent: by block, the same for all cells, and an own one.
const BLOCK_NOISE: [f64; 8] = [0.8, -1.2, 0.4, 1.5, -0.6, -0.9, 0.3, 0.7];
const NOISE: [f64; 8] = [0.3, -0.4, 0.1, 0.5, -0.2, -0.5, 0.2, 0.4];

/// A factor around 1 that depends on the block and on the cell.
pub(super) fn noise(block: u32, cell: usize) -> f64 {
    let deviation = |list: &[f64; 8], at: usize| list[at % list.len()] / 100.0;
    let block = block as usize;
    1.0 + deviation(&BLOCK_NOISE, block) + deviation(&NOISE, block * 3 + cell * 5)
}

/// Latencies around this median, with a tail.
pub(super) fn with_latency(record: &mut Record, median_us: f64) {
    let mut histogram = Histogram::new().unwrap();
    for step in 1..4_000_u32 {
        let share = f64::from(step) / 4_000.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let ns = (median_us * 1e3 * (0.6 + 0.8 * share.powi(2) + 0.02 / (1.0005 - share))) as u64;
        histogram.record(Nanos(ns));
    }
    let session_loop = &mut record.stages[0].session_loop;
    session_loop.histogram = Some(histogram.stored().unwrap());
    session_loop.service_us = Some(histogram.summary().unwrap());
    session_loop.series.clear();
}

fn with_throughput(record: &mut Record, per_s: f64, rows: f64, statements: f64) {
    let throughput = &mut record.stages[0].throughput;
    throughput.transactions_per_s = per_s;
    throughput.rows_per_s = per_s * rows;
    throughput.statements_per_s = per_s * statements;
}

/// A run of `rows` with this rate of rows.
pub(super) fn rows_run(rows_per_s: f64, batch: f64, median_us: f64) -> Record {
    let mut record = example_record();
    with_throughput(&mut record, rows_per_s / batch, batch, 1.0);
    with_latency(&mut record, median_us);
    record.stages[0].client_cpu.as_mut().unwrap().seconds = 1.5;
    record
}

/// A run of `oltp` on nodes with these CPU uses.
pub(super) fn oltp_run(tps: f64, median_us: f64, errors_per_s: f64, cpus: &[f64]) -> Record {
    let mut record = example_oltp();
    with_throughput(&mut record, tps, 40.0, 36.0);
    with_latency(&mut record, median_us);
    record.client.shares_machine_with_server = false;
    let sum: f64 = cpus.iter().sum();
    let stage = &mut record.stages[0];
    stage.server_cpu_s = None;
    stage.machine_busy_share = None;
    stage.io = None;
    let node = stage.session_loop.nodes[0].clone();
    stage.session_loop.nodes = cpus
        .iter()
        .enumerate()
        .map(|(at, cpus)| NodeRecord {
            node: format!("yb-tserver-{at}:5433"),
            transactions_per_s: tps * cpus / sum,
            share: cpus / sum,
            usage: Some(NodeUse { cpu_cores: Some(*cpus), ..NodeUse::default() }),
            outages: Vec::new(),
            ..node.clone()
        })
        .collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
    let count = (errors_per_s * stage.seconds).round() as u64;
    let error = ErrorEntry { sqlstate: "40001".to_owned(), count, ..ErrorEntry::default() };
    stage.session_loop.errors = vec![error];
    stage.session_loop.lock_waits = None;
    record
}

pub(super) fn experiment(
    name: &str,
    goal: Goal,
    axes: &[(&str, &[&str])],
    repeats: u32,
    run: &Record,
) -> Experiment {
    let mut combinations: Vec<Vec<String>> = vec![Vec::new()];
    for (_, values) in axes {
        combinations = combinations
            .iter()
            .flat_map(|start| {
                values.iter().map(|&value| [start.clone(), vec![value.to_owned()]].concat())
            })
            .collect();
    }
    let cell = |values| Cell { values, plan: run.plan.clone(), server: ServerChoice::default() };
    Experiment {
        id: "01938f7a-7c00-7000-8000-0123456789ff".parse().unwrap(),
        name: name.to_owned(),
        description: None,
        created_at: "2026-11-23T09:00:00Z".parse().unwrap(),
        goal,
        axes: axes
            .iter()
            .map(|(name, values)| Axis {
                name: (*name).to_owned(),
                values: values.iter().map(|&value| value.to_owned()).collect(),
            })
            .collect(),
        cells: combinations.into_iter().map(cell).collect(),
        repeats,
        order: Order::Interleaved,
        seed: 1,
        between: riops_model::study::Between::default(),
        reset: riops_model::study::Reset::default(),
        database: riops_model::study::DatabaseChoice::default(),
        time_limit_s: None,
        agents: None,
        notes: Vec::new(),
        effect: 0.02,
    }
}

/// All runs of an experiment: `run` makes the record of a cell with its values, and a factor around 1.
pub(super) fn finished(
    experiment: &Experiment,
    repeats: u32,
    run: impl Fn(usize, &[String], f64) -> Record,
) -> Vec<Finished> {
    let mut all = Vec::new();
    for block in 1..=repeats {
        for (at, cell) in experiment.cells.iter().enumerate() {
            let mut record = run(at, &cell.values, noise(block, at));
            let task = Task { cell: at, level: None, block, turn: 1 };
            record.id = uuid::Uuid::from_u128(u128::from(block) * 1_000 + at as u128);
            record.tags.insert("block".to_owned(), block.to_string());
            all.push(Finished { task, result: Ok(Box::new(record)) });
        }
    }
    all
}

/// The batch size against RIOPS, as on the page of ybio: steep up to 1,000 rows, then flat; read from one and from
/// four sessions.
pub(super) fn batch_size(repeats: u32) -> Study {
    let axes: [(&str, &[&str]); 2] =
        [("sessions", &["1", "4"]), ("batch", &["1", "10", "100", "1000", "10_000", "100_000"])];
    let mut experiment = experiment(
        "ybio-batch-size",
        Goal::Sweep { baseline: 0 },
        &axes,
        repeats,
        &rows_run(1.0, 1.0, 1.0),
    );
    experiment.description = Some("Which batch size reads the most rows per second?".to_owned());
    let finished = finished(&experiment, repeats, |_, values, noise| {
        let sessions: f64 = values[0].parse().unwrap();
        let batch: f64 = values[1].replace('_', "").parse().unwrap();
        let call_us =
            90.0 + batch * 0.85 * (1.0 + (sessions - 1.0) * 0.12) + batch.powf(1.1) * 0.04;
        rows_run(sessions * batch / call_us * 1e6 * noise, batch, call_us / noise)
    });
    Study { experiment, finished }
}

/// Three servers with prices: the last one is slower than the first one, and costs more.
pub(super) fn instances(prices: [&str; 3]) -> Study {
    let axes: [(&str, &[&str]); 1] = [("server", &["small", "large", "old"])];
    let first = oltp_run(1.0, 1.0, 0.0, &[1.0]);
    let mut experiment = experiment("instances", Goal::Sweep { baseline: 0 }, &axes, 2, &first);
    let facts = |at: usize| [("price".to_owned(), prices[at].to_owned())].into();
    for (at, cell) in experiment.cells.iter_mut().enumerate() {
        cell.plan.facts = facts(at);
    }
    let finished = finished(&experiment, 2, |at, _, noise| {
        let tps = [1_000.0, 2_000.0, 900.0][at] * noise;
        let mut record = oltp_run(tps, 5_000.0 + 1_000.0 * at as f64, 0.0, &[1.0]);
        record.plan.facts = facts(at);
        record
    });
    Study { experiment, finished }
}

/// Three and four nodes behind a load-balancing service, and a headless service.
pub(super) fn nodes(repeats: u32) -> Study {
    let axes: [(&str, &[&str]); 1] =
        [("server-set", &["headless, 3 nodes", "cluster-ip, 3 nodes", "cluster-ip, 4 nodes"])];
    let first = oltp_run(1.0, 1.0, 0.0, &[1.0]);
    let mut experiment =
        experiment("oltp-nodes", Goal::Sweep { baseline: 0 }, &axes, repeats, &first);
    experiment.cells.iter_mut().for_each(|cell| cell.plan.work = OltpRun::default().into());
    let finished = finished(&experiment, repeats, |at, _, noise| match at {
        0 => oltp_run(213.32 * noise, 640_000.0 / noise, 36.2, &[0.9, 4.1, 1.0]),
        1 => oltp_run(321.63 * noise, 430_000.0 / noise, 30.1, &[5.34, 5.86, 5.62]),
        _ => oltp_run(409.87 * noise, 334_000.0 / noise, 32.3, &[5.5, 5.78, 5.46, 5.41]),
    });
    Study { experiment, finished }
}

/// Working sets from a quarter to eight times the shared buffers.
pub(super) fn memory_to_disk(repeats: u32) -> Study {
    let axes: [(&str, &[&str]); 1] =
        [("rows", &["125_000", "250_000", "500_000", "1e6", "2e6", "4e6"])];
    let first = rows_run(1.0, 100.0, 1.0);
    let experiment =
        experiment("pgio-memory-to-disk", Goal::Sweep { baseline: 0 }, &axes, repeats, &first);
    let finished = finished(&experiment, repeats, |at, _, noise| {
        let buffers = [0.999, 0.998, 0.97, 0.52, 0.27, 0.14][at];
        let device = [0.0, 0.0, 0.002, 0.03, 0.35, 0.62][at];
        let rows_per_s = 1e6 / (1.0 + (1.0 - buffers - device) * 1.2 + device * 14.0) * noise;
        let mut record = rows_run(rows_per_s, 100.0, 100.0 / rows_per_s * 4e6);
        let io = record.stages[0].io.as_mut().unwrap();
        io.sources = Some(Sources {
            buffers_share: buffers,
            page_cache_share: Some(1.0 - buffers - device),
            device_share: Some(device),
        });
        io.device.as_mut().unwrap().read_mb_s = rows_per_s * device * 8192.0 / 1e6;
        record.stages[0].machine_busy_share = Some(if device > 0.1 { 0.4 } else { 0.97 });
        record
    });
    Study { experiment, finished }
}

/// A sweep of which one cell failed and another has an invalid run.
pub(super) fn with_failures() -> Study {
    let axes: [(&str, &[&str]); 1] = [("sessions", &["1", "2", "4", "800"])];
    let first = rows_run(1.0, 1.0, 1.0);
    let experiment = experiment("sessions", Goal::Sweep { baseline: 0 }, &axes, 3, &first);
    let mut finished = finished(&experiment, 3, |at, _, noise| {
        let rows_per_s = [10_000.0, 19_000.0, 31_000.0, 1.0][at] * noise;
        rows_run(rows_per_s, 1.0, 100.0)
    });
    for run in &mut finished {
        match run.task {
            Task { cell: 3, .. } => {
                run.result =
                    Err("cannot connect 800 sessions: too many clients already".to_owned());
            }
            Task { cell: 1, block: 2, .. } => {
                let verdict = &mut run.result.as_mut().unwrap().verdict;
                verdict.valid = false;
                verdict.reasons = vec!["the access path of read_rows changed".to_owned()];
            }
            Task { cell: 2, block, .. } => {
                let threshold = riops_model::record::ThresholdRecord {
                    stage: None,
                    threshold: "p99<1ms".parse().unwrap(),
                    found: Some(1_100.0),
                    at_least: false,
                    held: block == 1,
                    ended_run: false,
                };
                run.result.as_mut().unwrap().thresholds = vec![threshold];
            }
            _ => {}
        }
    }
    Study { experiment, finished }
}

/// An A/B test of two variants with two runs each in a block.
pub(super) fn ab(blocks: u32, factor: f64) -> Study {
    let first = rows_run(1.0, 1.0, 1.0);
    let goal = Goal::Ab(AbSettings {
        costs: Vec::new(),
        blocks_max: 10,
        alpha: 0.05,
        repeats_max: 0,
        one_sided: false,
        machine: None,
    });
    let experiment = experiment("compare", goal, &[("variant", &["a.toml", "b.toml"])], 1, &first);
    let mut finished = Vec::new();
    for block in 1..=blocks {
        for turn in 1..=2 {
            for cell in 0..2 {
                let level = if cell == 1 { factor } else { 1.0 };
                let noise = noise(block * 2 + turn, cell);
                let record = rows_run(50_000.0 * level * noise, 1.0, 500.0 / level / noise);
                let task = Task { cell, level: None, block, turn };
                finished.push(Finished { task, result: Ok(Box::new(record)) });
            }
        }
    }
    Study { experiment, finished }
}

/// Transactions per second of a server with these coefficients of the scalability law.
fn capacity_per_s(sessions: f64) -> f64 {
    1_000.0 * sessions / (1.0 + 0.03 * (sessions - 1.0) + 0.0012 * sessions * (sessions - 1.0))
}

/// A search for the saturation point as its strategy conducts it, on a server that follows the scalability law.
pub(super) fn saturation(search: Search) -> Study {
    let goal = Goal::Saturation(SaturationSettings { search, first: 1, last: 128 });
    let mut first = rows_run(1.0, 1.0, 1.0);
    first.plan.sessions = 16;
    first.plan.thresholds = vec!["p99<40ms".parse().unwrap()];
    let experiment = experiment("find-my-limit", goal, &[], 3, &first);
    let mut study = Study { experiment, finished: Vec::new() };
    while let Some(task) = next(&study) {
        let record = load_run(&study, task);
        study.finished.push(Finished { task, result: Ok(Box::new(record)) });
    }
    study
}

/// A run of a closed loop, or of an open loop whose latency grows near the capacity.
fn load_run(study: &Study, task: Task) -> Record {
    let mut noise = noise(task.block, 0);
    let plan = study.experiment.plan(&task).unwrap();
    let (per_s, median_us) = match task.level.unwrap() {
        Level::Sessions(sessions) => {
            noise *= 1.0 + f64::from(sessions % 7) * 0.002;
            let per_s = capacity_per_s(f64::from(sessions)) * noise;
            (per_s, f64::from(sessions) / per_s * 1e6)
        }
        Level::Rate { per_s, .. } => {
            let used = per_s / (capacity_per_s(f64::from(plan.sessions)) * noise);
            (per_s.min(per_s / used), 1_500.0 / (1.0 - used.min(0.97)))
        }
    };
    let mut record = rows_run(per_s * 10.0, 10.0, median_us);
    let p99_us = record.stages[0].session_loop.service_us.as_ref().unwrap().p99;
    record.thresholds = vec![ThresholdRecord {
        stage: None,
        threshold: plan.thresholds[0].clone(),
        found: Some(p99_us),
        at_least: false,
        held: plan.thresholds[0].is_met_by(p99_us),
        ended_run: false,
    }];
    if let Some(Level::Rate { per_s: rate, .. }) = task.level {
        let session_loop = &mut record.stages[0].session_loop;
        (session_loop.response_us, session_loop.response_histogram) =
            (session_loop.service_us.clone(), session_loop.histogram.clone());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let (intended, waiting) = ((rate * 10.0) as u64, ((rate - per_s).max(0.0) * 10.0) as u64);
        let answered = intended - waiting;
        session_loop.schedule = Some(ScheduleRecord {
            intended,
            sent: intended - waiting,
            waiting,
            ..ScheduleRecord::default()
        });
        record.stages[0].transactions = answered;
    }
    record.stages[0].sessions = plan.sessions;
    record.plan = plan;
    record
}
