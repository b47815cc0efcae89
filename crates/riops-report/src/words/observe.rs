//! Reporting of `observe`: what others did, and what it cost.

use crate::document::{Document, Headline, Hint};
use crate::interval::seconds;
use crate::words::Words;
use crate::words::next::Commands;
use riops_model::figure::Summary;
use riops_model::plan::{ObserveRun, Plan};
use riops_model::record::{Point, Record, StageRecord};
use riops_model::units::format::{count, duration_us, rate};

impl Words for ObserveRun {
    fn work(&self) -> String {
        if self.command.is_empty() {
            return "observed: the sessions of the database".to_owned();
        }
        format!("observed: {}", self.command)
    }

    fn report_title(&self, _: &Record) -> String {
        "riops observe".to_owned()
    }

    fn setup(&self, _: &Summary<'_>) -> Option<String> {
        Some("riops generated no load and verified nothing".to_owned())
    }

    fn measure_name(&self) -> &'static str {
        "observe"
    }

    fn best(&self, record: &Record) -> Headline {
        let (label, stage) = ("observe".to_owned(), record.stages.first());
        let time = duration_us(stage.map_or(0.0, |stage| stage.seconds) * 1e6);
        let Some((name, stage)) = self.counted().zip(stage) else {
            return Headline { label, value: time, unit: String::new(), detail: self.work() };
        };
        let value = rate(stage.throughput.transactions_per_s);
        let detail = format!("{} {name} in {time}", count(stage.transactions));
        Headline { label, value, unit: format!("{name}/s"), detail }
    }

    fn results(&self, document: &mut Document, record: &Record) {
        let Some(stage) = record.stages.first() else {
            return;
        };
        document.line("duration", duration_us(stage.seconds * 1e6));
        let observed = stage.observed.clone().unwrap_or_default();
        let counts = observed.counts.iter().map(|counted| {
            format!("{}/s {} ({} in total)", counted.name, rate(counted.per_s), rate(counted.count))
        });
        document.lines("count", counts);
        if let Some(cpu_s) = observed.command_cpu_s {
            document.line("command", format!("{} of CPU", duration_us(cpu_s * 1e6)));
        }
    }

    fn latency_of(&self, _: &StageRecord) -> String {
        self.counted().unwrap_or("transaction").to_owned()
    }

    fn for_a_steady_rate(&self) -> Option<&'static str> {
        None
    }

    fn replies(&self) -> &'static str {
        if self.command.is_empty() {
            "observed for the whole time; riops generated no load"
        } else {
            "the command succeeded; riops generated no load"
        }
    }

    fn next_steps(&self, _: &Summary<'_>, commands: &Commands<'_>) -> Vec<Hint> {
        commands.page().into_iter().collect()
    }

    fn interval_line(&self, point: &Point, plan: &Plan) -> String {
        let per_s = point.transactions as f64 / point.seconds.max(f64::MIN_POSITIVE);
        let name = self.counted().unwrap_or("transactions");
        format!("{:>6} s  {:>12} {name}/s", seconds(point.t_s, plan, 1), rate(per_s))
    }
}
