//! Commands to try next.

use crate::document::Hint;
use riops_model::figure::{Bottleneck, Summary};
use riops_model::plan::{Plan, Stop};
use riops_model::record::TimePart;

/// Whether the name of the workload alone describes the run. Its seed, label and tags do not matter.
fn is_default(plan: &Plan, cpus: u32) -> bool {
    let default = Plan {
        work: plan.work.clone(),
        seed: plan.seed,
        label: plan.label.clone(),
        tags: plan.tags.clone(),
        sessions: cpus,
        workers: plan.workers,
        ..Plan::default()
    };
    *plan == default && plan.work.is_default()
}

/// Returns the words of the run, `run` first, if it differs from the defaults only in these options and in its dataset, whose
/// parameters a run takes from the registry.
fn common_words(plan: &Plan, cpus: u32) -> Option<Vec<String>> {
    let default = Plan::default();
    let common = Plan {
        sessions: cpus,
        stop: default.stop,
        warmup_s: default.warmup_s,
        schedule: default.schedule.clone(),
        interval_s: default.interval_s,
        dataset: default.dataset,
        prepare: default.prepare,
        ..plan.clone()
    };
    let rate = match &plan.schedule {
        schedule if *schedule == default.schedule => None,
        schedule if schedule.is_poisson() || !schedule.steps().is_empty() => return None,
        schedule => schedule.per_s(),
    };
    let stop = match plan.stop {
        Stop::DurationS(seconds) => format!("--duration={seconds}s"),
        Stop::Transactions(count) => format!("--transactions={count}"),
        Stop::Rows(count) => format!("--total-rows={count}"),
    };
    let options = [
        (plan.sessions != cpus).then(|| format!("--sessions={}", plan.sessions)),
        (plan.stop != default.stop).then_some(stop),
        (plan.warmup_s != default.warmup_s).then(|| format!("--warmup={}s", plan.warmup_s)),
        rate.map(|rate| format!("--rate={rate}")),
    ];
    let words = ["run".to_owned(), plan.work.traits().name.to_owned()];
    is_default(&common, cpus)
        .then(|| words.into_iter().chain(options.into_iter().flatten()).collect())
}

/// The command line of a run, as far as it is known: the options for its server and its store, and its words.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) server: Option<&'a str>,
    pub(crate) store: Option<&'a str>,
    pub(crate) words: Option<&'a [String]>,
}

/// Builds the commands of hints for one workload and server.
pub(crate) struct Commands<'a> {
    workload: &'a str,
    /// Options of the server: without them, the command would measure another one.
    server: &'a str,
    /// The options that select the store; `None` if the run is not stored.
    store: Option<&'a str>,
    /// The command line of the run without its server, if it is known: `run rows --batch=10`, word by word.
    words: Option<Vec<String>>,
}

impl<'a> Commands<'a> {
    pub(crate) fn new(summary: &Summary<'a>, known: Known<'a>) -> Self {
        let Known { server, store, words } = known;
        let record = summary.record;
        let cpus = u32::try_from(record.client.machine.cpus).unwrap_or(u32::MAX);
        let server = server.unwrap_or(if record.target.embedded { "" } else { " -d …" });
        let words = words.map(<[String]>::to_vec).or_else(|| common_words(&record.plan, cpus));
        Self { workload: &record.workload, server, store, words }
    }

    /// The same run with another option, `--name value`.
    pub(crate) fn same(&self, option: &str, purpose: &'static str) -> Hint {
        Hint::new(format!("{} {option}", self.repeated("run", option)), purpose)
    }

    /// The same run, in which commits do not wait for the WAL.
    fn without_waits_for_wal(&self) -> Hint {
        let command = format!("PGOPTIONS='-c synchronous_commit=off' {}", self.repeated("run", ""));
        Hint::new(command, "what durable commits cost")
    }

    /// The smallest number of sessions with this rate.
    fn saturation(&self) -> Hint {
        let command =
            format!("{} --find-saturation sessions", self.repeated("sweep", "--sessions"));
        Hint::new(command, "the fewest sessions that reach this rate")
    }

    /// The command line of the run with another subcommand, without an option that is replaced.
    fn repeated(&self, subcommand: &str, option: &str) -> String {
        let name = option.split(' ').next().unwrap_or_default();
        match self.words.as_deref() {
            Some([_run, rest @ ..]) => {
                let is_kept =
                    |word: &&String| name.is_empty() || word.split('=').next() != Some(name);
                let words = rest.iter().filter(is_kept).map(|word| format!(" {word}"));
                let store = self.store.unwrap_or_default();
                format!("riops {subcommand}{}{}{store}", words.collect::<String>(), self.server)
            }
            // Options that are unknown here.
            _ => format!("riops {subcommand} {} …{}", self.workload, self.server),
        }
    }

    /// Another command on the same server.
    pub(crate) fn other(&self, command: &str, purpose: &'static str) -> Hint {
        Hint::new(format!("{command}{}", self.server), purpose)
    }

    /// The page of the run, if it is stored.
    pub(crate) fn page(&self) -> Option<Hint> {
        self.stored("riops report last".to_owned(), "an HTML page of this run")
    }

    /// A command about the run, if it is stored.
    fn stored(&self, command: String, purpose: &'static str) -> Option<Hint> {
        Some(Hint::new(command + self.store?, purpose))
    }
}

/// The command that shows whether the bottleneck is one, or how to raise it.
pub(super) fn lever(summary: &Summary<'_>, commands: &Commands<'_>) -> Option<Hint> {
    if !summary.has_bottleneck() {
        return None;
    }
    let plan = &summary.record.plan;
    let (sessions, workers) = (plan.sessions * 4, plan.workers * 2);
    let disk = || commands.other("riops doctor --disk", "the maximum of the device");
    let again = || {
        let command = format!("riops runs rerun last{}", commands.server);
        commands.stored(command, "when the machine is quieter")
    };
    let ping = || commands.other("riops run ping", "the round trip alone");
    let holds_for = |part| summary.lock_holders_wait().is_some_and(|(longest, _)| longest == part);
    let first_wait =
        summary.server_waits().and_then(|(_, events)| TimePart::of_event(&events.first()?.event));
    Some(match summary.bottleneck() {
        Bottleneck::Client => commands.same(&format!("--workers {workers}"), "more workers"),
        Bottleneck::Locks if holds_for(TimePart::Wal) => commands.without_waits_for_wal(),
        Bottleneck::Locks if plan.sessions > 1 => commands
            .same(&format!("--sessions {}", plan.sessions.div_ceil(4)), "with fewer conflicts"),
        Bottleneck::ForeignCpu => again()?,
        Bottleneck::SharedCpu if summary.record.is_disturbed() => again()?,
        Bottleneck::ServerCpu | Bottleneck::SharedCpu | Bottleneck::Device => commands.saturation(),
        Bottleneck::Waits => match first_wait {
            Some(TimePart::Wal) => commands.without_waits_for_wal(),
            Some(TimePart::Read | TimePart::Write)
                if summary.record.target.disk_limit.is_none() =>
            {
                disk()
            }
            _ => commands.stored("riops runs show last".to_owned(), "all wait events")?,
        },
        Bottleneck::BusyDevice => disk(),
        Bottleneck::Pool | Bottleneck::Network | Bottleneck::ServerOrNetwork => ping(),
        Bottleneck::Waiting if summary.record.target.pooler.is_some() => ping(),
        Bottleneck::Waiting => commands.same(&format!("--sessions {sessions}"), "more sessions"),
        Bottleneck::Rate => {
            let is_breached = summary.record.thresholds.iter().any(|threshold| !threshold.held);
            let (factor, purpose) =
                if is_breached { (0.5, "half the rate") } else { (2.0, "twice the rate") };
            commands.same(&format!("--rate {}", plan.schedule.per_s()? * factor), purpose)
        }
        Bottleneck::Locks | Bottleneck::ThinkTime => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::plan::Schedule;
    use riops_model::record::{
        Neighbors, Record, Sampled, ScheduleRecord, SessionTime, ThresholdRecord, WaitShare,
    };

    fn command(words: Option<&[String]>, change: impl Fn(&mut Record)) -> Option<String> {
        let mut record = example_record();
        record.stages[0].machine_busy_share = Some(0.5);
        change(&mut record);
        let summary = Summary::first_stage(&record).unwrap();
        let known = Known { server: Some(" -d bench"), store: Some(" --store s"), words };
        lever(&summary, &Commands::new(&summary, known)).map(|hint| hint.command)
    }

    fn sampled(record: &mut Record, shares: &[(&str, f64)]) {
        let wait = |&(event, share): &(&str, f64)| WaitShare { event: event.to_owned(), share };
        let part = |&(event, share): &(&str, f64)| SessionTime {
            part: TimePart::of_event(event).unwrap(),
            share,
            reach: None,
        };
        record.stages[0].probes = Some(Sampled {
            waits: shares.iter().map(wait).collect(),
            session_time: shares.iter().map(part).collect(),
            looks: 1_000,
            ..Sampled::default()
        });
    }

    #[test]
    fn the_lever_fits_the_bottleneck_and_repeats_the_options() {
        let words = ["run", "rows", "--batch=10", "--sessions=4"].map(str::to_owned);
        let lever_with = |change: &dyn Fn(&mut Record)| command(Some(&words), change).unwrap();
        let waiting = lever_with(&|_| {});
        assert!(
            waiting.starts_with("riops run rows --batch=10 -d bench --store s --sessions "),
            "{waiting}"
        );
        let busy = lever_with(&|record| record.stages[0].machine_busy_share = Some(0.99));
        assert_eq!(
            busy,
            "riops sweep rows --batch=10 -d bench --store s --find-saturation sessions"
        );
        let wal = "PGOPTIONS='-c synchronous_commit=off' riops run rows --batch=10 --sessions=4 -d bench --store s";
        assert_eq!(
            lever_with(&|record| sampled(record, &[("IO:WALSync", 0.9), ("CPU", 0.1)])),
            wal
        );
        // The sessions that hold the locks wait for the WAL.
        let locks = [("Lock:transactionid", 0.6), ("IO:WALSync", 0.35), ("CPU", 0.05)];
        assert_eq!(lever_with(&|record| sampled(record, &locks)), wal);
        let locks = [("Lock:transactionid", 0.6), ("CPU", 0.4)];
        assert!(lever_with(&|record| sampled(record, &locks)).contains(" --sessions "));
        let foreign = lever_with(&|record| {
            record.stages[0].machine_busy_share = Some(0.99);
            let neighbors = Neighbors { cpu_share: Some(0.6), ..Neighbors::default() };
            record.stages[0].neighbors = Some(neighbors);
        });
        assert_eq!(foreign, "riops runs rerun last -d bench --store s");
    }

    #[test]
    fn a_rate_that_breached_a_threshold_is_not_raised() {
        let rate = |is_held: bool| {
            let lever = command(None, |record| {
                record.plan.schedule = Schedule::Constant { per_s: 100.0 };
                let schedule =
                    ScheduleRecord { intended: 12_000, sent: 12_000, ..Default::default() };
                record.stages[0].session_loop.schedule = Some(schedule);
                record.thresholds = vec![ThresholdRecord {
                    stage: None,
                    threshold: "p99<1ms".parse().unwrap(),
                    found: Some(2_000.0),
                    at_least: false,
                    held: is_held,
                    ended_run: false,
                }];
            });
            lever.unwrap_or_default()
        };
        assert!(rate(true).ends_with(" --rate 200"), "{}", rate(true));
        assert!(rate(false).ends_with(" --rate 50"), "{}", rate(false));
    }

    #[test]
    fn unknown_options_are_an_ellipsis() {
        let unknown = command(None, |record| record.plan.pipeline = 3);
        assert!(unknown.unwrap().starts_with("riops run rows … -d bench --sessions "));
        let known = command(None, |record| {
            record.plan.sessions = 3;
            record.plan.stop = Stop::DurationS(5.0);
        });
        assert_eq!(known.unwrap(), "riops run rows --duration=5s -d bench --store s --sessions 12");
    }
}
