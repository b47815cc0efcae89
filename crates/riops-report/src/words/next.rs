//! Commands to try next.

use crate::document::Hint;
use riops_model::figure::{Bottleneck, Summary};
use riops_model::plan::Plan;

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

/// Builds the commands of hints for one workload and server.
pub(crate) struct Commands<'a> {
    workload: &'a str,
    /// Options of the server: without them, the command would measure another one.
    server: &'a str,
    /// Options of the run and of its server; `…` stands for options that are unknown here.
    options: String,
    /// The options that select the store; `None` if the run is not stored.
    store: Option<&'a str>,
}

impl<'a> Commands<'a> {
    pub(crate) fn new(
        summary: &Summary<'a>,
        server: Option<&'a str>,
        store: Option<&'a str>,
    ) -> Self {
        let record = summary.record;
        let cpus = u32::try_from(record.client.machine.cpus).unwrap_or(u32::MAX);
        let is_plain = is_default(&record.plan, cpus);
        let (server, options) = match (server, record.target.embedded) {
            (Some(server), _) if is_plain => (server, server.to_owned()),
            (Some(server), _) => (server, format!(" …{server}")),
            (None, true) if is_plain => ("", String::new()),
            (None, true) => ("", " …".to_owned()),
            (None, false) => (" -d …", " …".to_owned()),
        };
        Self { workload: &record.workload, server, options, store }
    }

    /// The same run with another option.
    pub(crate) fn same(&self, option: &str, purpose: &'static str) -> Hint {
        Hint::new(format!("riops run {}{} {option}", self.workload, self.options), purpose)
    }

    /// Another command on the same server.
    pub(crate) fn other(&self, command: &str, purpose: &'static str) -> Hint {
        Hint::new(format!("{command}{}", self.server), purpose)
    }

    /// The page of the run, if it is stored.
    pub(crate) fn page(&self) -> Option<Hint> {
        let store = self.store?;
        Some(Hint::new(format!("riops report last{store}"), "an HTML page of this run"))
    }
}

/// Changes that may raise the result.
pub(super) fn scaling(summary: &Summary<'_>, commands: &Commands<'_>) -> Option<Hint> {
    let (sessions, workers) = (summary.record.plan.sessions * 4, summary.record.plan.workers * 2);
    match summary.bottleneck() {
        _ if !summary.has_bottleneck() => None,
        // Behind a pooler, more sessions may only wait longer.
        Bottleneck::Waiting if summary.record.target.pooler.is_some() => None,
        Bottleneck::Waiting => Some(commands.same(&format!("-c {sessions}"), "more sessions")),
        Bottleneck::Client => Some(commands.same(&format!("-j {workers}"), "more workers")),
        Bottleneck::BusyDevice => {
            Some(commands.other("riops doctor --disk", "the maximum of the device"))
        }
        _ => None,
    }
}
