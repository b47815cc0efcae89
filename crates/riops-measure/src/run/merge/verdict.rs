//! Whether the result of several clients is valid, from what each of them found and from what they found together.

use std::collections::BTreeSet;

use super::fit::{MergeError, Part, VALID_SHARE, Window};
use crate::run::verdict::{STRICT, shared_dataset, strict_reasons, unlike_planned, warnings};
use riops_model::figure::judged;
use riops_model::record::{Record, StageRecord, Warning, WarningKind};
use riops_model::units::percent;

/// Name of the processes of riops, as the kernel shows it.
const PROCESS: &str = "riops";

/// From more agents on, only their number is given.
const AGENTS_NAMED: usize = 8;
/// From more texts of one kind of warning on, one stands for all.
const TEXTS_MAX: usize = 3;

/// Adds the stages to the merged record, and judges them.
pub(super) struct Judge<'a> {
    parts: &'a [Part],
    pub(super) merged: &'a mut Record,
    /// Whether the runs have several stages. Each is then named.
    several: bool,
    /// Reasons and warnings of clients, with the numbers of those that found them.
    reasons: Vec<(String, Vec<u32>)>,
    warnings: Vec<(Warning, Vec<u32>)>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(parts: &'a [Part], merged: &'a mut Record) -> Self {
        let mut stages = parts.iter().filter_map(|part| Some(part.record.as_ref()?.stages.len()));
        let several = stages.next().is_some_and(|stages| stages > 1);
        let mut judge = Self { parts, merged, several, reasons: Vec::new(), warnings: Vec::new() };
        for part in parts {
            judge.add_part(part);
        }
        judge
    }

    /// Adds what a client found.
    fn add_part(&mut self, part: &Part) {
        let agent = part.agent.number;
        let Some(record) = &part.record else {
            let failure = part.agent.failure.as_deref().unwrap_or("its results are missing");
            return self.reason(agent, failure);
        };
        let reasons = record.verdict.reasons.iter().filter(|reason| !reason.ends_with(STRICT));
        for reason in reasons.chain(&part.agent.failure) {
            self.reason(agent, reason);
        }
        let own = self.ids();
        for stage in &record.stages {
            let cpus = self.shares_host(part).then(|| record.client.machine.counted_cpus());
            let stage = without_clients(stage, &own, cpus);
            let stage_warnings = warnings(&stage, &record.plan, &record.client.machine);
            if self.merged.plan.strict {
                for reason in strict_reasons(&stage, &record.plan, &stage_warnings) {
                    self.reason(agent, &reason);
                }
            }
            for warning in stage_warnings {
                add(&mut self.warnings, agent, warning);
            }
        }
        // These do not follow from a stage.
        let other = |warning: &&Warning| {
            matches!(
                warning.kind,
                WarningKind::Statement | WarningKind::PlanChange | WarningKind::Durability
            )
        };
        for warning in record.verdict.warnings.iter().filter(other) {
            add(&mut self.warnings, agent, warning.clone());
        }
        self.merged.accesses.extend(record.accesses.iter().cloned());
        self.add_users(part, record, &own);
    }

    /// Adds the other users of the dataset that are none of the clients.
    fn add_users(&mut self, part: &Part, record: &Record, own: &[String]) {
        let Some(dataset) = &record.target.dataset else {
            return;
        };
        let is_own = |user: &String| own.iter().any(|id| user.contains(id));
        let others: Vec<_> =
            dataset.other_users.iter().filter(|user| !is_own(user)).cloned().collect();
        if let Some(merged) = &mut self.merged.target.dataset {
            merged.other_users.retain(|user| !is_own(user));
        }
        if let Some(warning) = shared_dataset(&others) {
            if self.merged.plan.strict {
                self.reason(part.agent.number, &format!("disturbed: {}{STRICT}", warning.text));
            }
            add(&mut self.warnings, part.agent.number, warning);
        }
    }

    /// Returns the ids of the runs of all clients, which are in the names of their sessions.
    fn ids(&self) -> Vec<String> {
        let of_part = |part: &Part| part.record.as_ref().map(|record| record.id).or(part.agent.run);
        self.parts.iter().filter_map(of_part).map(|id| id.to_string()).collect()
    }

    /// Whether another client is on the same machine.
    fn shares_host(&self, part: &Part) -> bool {
        let same = |other: &&Part| other.agent.host == part.agent.host;
        self.parts.iter().filter(same).count() > 1
    }

    fn reason(&mut self, agent: u32, text: &str) {
        add(&mut self.reasons, agent, text.to_owned());
    }

    /// Adds a merged stage.
    pub(super) fn add(&mut self, stage: StageRecord, window: &Window) -> Result<(), MergeError> {
        let name = self.several.then(|| stage.name.clone());
        let traits = self.merged.plan.work.traits();
        let mut reasons = unlike_planned(&stage, &traits);
        let share = window.common_share();
        if share < VALID_SHARE {
            reasons.push(format!(
                "all clients measured in only {} of the time, {:.1} s: the latencies include times in which some did not",
                percent(share),
                window.common_s
            ));
        }
        self.merged.verdict.reasons.extend(reasons);
        // Agents carry the thresholds of the whole plan, clients started by hand only their own.
        let agents = self.parts.iter().filter_map(|part| part.record.as_ref());
        let agents = agents.filter(|record| record.plan.share.is_some());
        let mut thresholds = agents.flat_map(|record| &record.thresholds);
        let ended_run = thresholds.find(|record| record.ended_run && record.stage == name);
        let ended_run = ended_run.map(|record| &record.threshold);
        let thresholds = judged(self.merged, &stage, ended_run, name.as_deref())?;
        self.merged.thresholds.extend(thresholds);
        self.merged.stages.push(stage);
        Ok(())
    }

    /// Adds the reasons and warnings of the clients.
    pub(super) fn finish(self) {
        let all = self.parts.len();
        let own = std::mem::take(&mut self.merged.verdict.reasons);
        let of_agents =
            self.reasons.iter().map(|(text, agents)| format!("{}{text}", prefix(agents, all)));
        self.merged.verdict.reasons = of_agents.chain(own).collect();
        let mut kinds: Vec<Vec<(Warning, Vec<u32>)>> = Vec::new();
        for entry in self.warnings {
            let kind = |(warning, _): &(Warning, Vec<u32>)| (warning.kind, warning.stage.clone());
            match kinds.iter_mut().find(|known| known.first().map(kind) == Some(kind(&entry))) {
                Some(known) => known.push(entry),
                None => kinds.push(vec![entry]),
            }
        }
        self.merged.verdict.warnings =
            kinds.into_iter().flat_map(|kind| with_agents(kind, all)).collect();
        self.merged.verdict.valid = self.merged.verdict.reasons.is_empty();
    }
}

/// Names agents before a text, unless they are all.
fn prefix(agents: &[u32], all: usize) -> String {
    match agents {
        agents if agents.len() == all => String::new(),
        [agent] => format!("agent {agent}: "),
        agents if agents.len() > AGENTS_NAMED => format!("{} of {all} agents: ", agents.len()),
        agents => {
            let numbers: Vec<_> = agents.iter().map(u32::to_string).collect();
            format!("agents {}: ", numbers.join(", "))
        }
    }
}

/// Returns the warnings of one kind with the agents that found them. The first one stands for many that differ in their values.
fn with_agents(kind: Vec<(Warning, Vec<u32>)>, all: usize) -> Vec<Warning> {
    let agents: BTreeSet<u32> = kind.iter().flat_map(|(_, agents)| agents).copied().collect();
    let is_one = kind.len() > TEXTS_MAX;
    let named = |(warning, finders): (Warning, Vec<u32>)| {
        let prefix = match finders.first() {
            Some(first) if is_one => {
                format!("{} of {all} agents, for example {first}: ", agents.len())
            }
            _ => prefix(&finders, all),
        };
        Warning { text: format!("{prefix}{}", warning.text), ..warning }
    };
    let shown = if is_one { 1 } else { kind.len() };
    kind.into_iter().take(shown).map(named).collect()
}

/// Adds what an agent found to what is known with the numbers of the agents that found it.
fn add<T: PartialEq>(entries: &mut Vec<(T, Vec<u32>)>, agent: u32, what: T) {
    match entries.iter_mut().find(|(known, _)| *known == what) {
        Some((_, agents)) if agents.contains(&agent) => {}
        Some((_, agents)) => agents.push(agent),
        None => entries.push((what, vec![agent])),
    }
}

/// Returns a stage whose neighbors are none of the clients. `own` are the ids of their runs. `cpus` are the processors of the
/// machine if others of them are on it.
fn without_clients(stage: &StageRecord, own: &[String], cpus: Option<usize>) -> StageRecord {
    let mut stage = stage.clone();
    let Some(neighbors) = &mut stage.neighbors else {
        return stage;
    };
    neighbors.sessions.retain(|session| !own.iter().any(|id| session.name.contains(id.as_str())));
    if let Some(cpus) = cpus {
        let (clients, others): (Vec<_>, _) =
            neighbors.processes.drain(..).partition(|process| process.name == PROCESS);
        neighbors.processes = others;
        let used = clients.iter().map(|process| process.cpus).sum::<f64>() / cpus.max(1) as f64;
        neighbors.cpu_share = neighbors.cpu_share.map(|share| (share - used).max(0.0));
    }
    stage
}
