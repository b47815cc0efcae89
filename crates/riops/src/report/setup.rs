//! What ran where, in a few words: server, sessions, settings of the session loop, access paths.

use super::document::{Badge, Tone};
use super::paths::CheckedPath;
use crate::figure::Summary;
use crate::plan::{Protocol, Spread, Stop};
use crate::record::{Record, StageKind, Validity};
use crate::units::format::{count, joined, number_of, rate};

impl<'a> Summary<'a> {
    /// Server and database in one line.
    pub fn target(&self) -> String {
        let target = &self.record.target;
        // An imported run may not know its server.
        if target.server_version.is_empty() {
            return "unknown server".to_owned();
        }
        if self.record.imported.is_some() && target.address.is_empty() {
            return format!("{} {}", target.flavor, target.server_version);
        }
        let (flavor, version, database) =
            (&target.flavor, &target.server_version, &target.database);
        // The address of the embedded server is a long path that the user does not need.
        if target.embedded {
            format!("{flavor} {version} (embedded), database {database}")
        } else {
            format!("{flavor} {version}, database {database} on {}", target.address)
        }
    }

    /// Sessions, workers and duration.
    pub fn setup(&self) -> String {
        let plan = &self.record.plan;
        let part = |done, all, noun| {
            format!("{} of {} {noun} in {:.3} s", count(done), count(all), self.stage.seconds)
        };
        let stop = match plan.stop {
            Stop::DurationS(_) if self.record.stages.len() > 1 => {
                format!("{:.1} s per stage", self.stage.seconds)
            }
            Stop::DurationS(_) => format!("{:.1} s", self.stage.seconds),
            Stop::Transactions(number) => part(self.stage.transactions, number, "transactions"),
            Stop::Rows(number) if self.record.stages.len() > 1 => {
                format!("{} rows per stage", count(number))
            }
            Stop::Rows(number) => part(self.stage.rows, number, "rows"),
        };
        let driven = if self.stage.kind == StageKind::ServerLoop && plan.work.stages().len() == 1 {
            ", one call of the server loop each".to_owned()
        } else {
            format!(" on {}", number_of(plan.workers.into(), "worker"))
        };
        format!("{}{driven}, {stop}", number_of(plan.sessions.into(), "session"))
    }

    /// The settings of the session loop that are not the default.
    pub fn drive(&self) -> Option<String> {
        let plan = &self.record.plan;
        let mut parts = Vec::new();
        if let Some(per_s) = plan.schedule.per_s() {
            let kind = if plan.schedule.is_poisson() { "Poisson" } else { "constant" };
            let steps = plan.schedule.steps();
            parts.push(if steps.is_empty() {
                format!("{kind} rate of {} transactions/s", rate(per_s))
            } else {
                let poisson = if kind == "Poisson" { "Poisson " } else { "" };
                format!(
                    "{poisson}rate of {}: {} transactions/s on average",
                    joined(steps, ", "),
                    rate(per_s)
                )
            });
        }
        if plan.protocol != Protocol::Prepared {
            parts.push(format!("{} protocol", plan.protocol.as_str()));
        }
        if plan.pipeline > 1 {
            parts.push(format!("up to {} transactions in flight per session", plan.pipeline));
        }
        if let Some(every) = plan.reconnect_every {
            parts.push(format!("a new connection every {every} transactions"));
        }
        if let Some(nodes) = plan.nodes {
            parts.push(format!("only the first {}", number_of(nodes.into(), "node")));
        }
        if plan.spread != Spread::default() || plan.rebalance {
            let back = if plan.rebalance { ", sessions return to recovered nodes" } else { "" };
            parts.push(format!("spread {}{back}", plan.spread));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Each expected access path once, as `name` shows it.
    pub fn access_paths(&self, name: impl Fn(&str) -> String) -> Vec<CheckedPath<'a>> {
        CheckedPath::of(&self.record.accesses, name)
    }
}

/// Number and model of the CPUs; with both numbers if riops may not use all of the machine.
pub(super) fn cpu_text(record: &Record) -> String {
    let machine = &record.client.machine;
    if machine.cpus == 0 {
        return "unknown".to_owned();
    }
    let model = machine.cpu_model.as_deref().unwrap_or("unknown CPU");
    match machine.machine_cpus.filter(|&all| all > machine.cpus) {
        Some(all) => format!("{} of {all} × {model}", machine.cpus),
        None => format!("{} × {model}", machine.cpus),
    }
}

/// The settings that explain most differences between two runs. The page lists all of them in a table.
const MAIN_SETTINGS: [&str; 7] = [
    "shared_buffers",
    "max_wal_size",
    "synchronous_commit",
    "full_page_writes",
    "fsync",
    "huge_pages",
    "debug_io_direct",
];

/// The main settings of the server in a line.
pub(super) fn main_settings(record: &Record) -> String {
    let settings = &record.target.settings;
    let known = MAIN_SETTINGS.iter().filter_map(|name| Some((name, settings.get(*name)?)));
    joined(known.map(|(name, value)| format!("{name} = {value}")), " · ")
}

/// Returns the state of a run in a few words, for lists and pages, and the tone of their badge.
pub fn badge(validity: Validity, status: &str, marks: &str) -> Badge {
    let (text, tone) = match (validity, status) {
        (Validity::NotVerified, _) => ("not verified", Tone::Warn),
        (Validity::Valid, "done") if marks.is_empty() => ("valid", Tone::Good),
        (Validity::Valid, "done") => ("valid", Tone::Warn),
        (Validity::Valid, "interrupted") => ("valid, interrupted", Tone::Warn),
        (Validity::Invalid, "done") => ("not valid", Tone::Bad),
        (Validity::Invalid, "interrupted") => ("not valid, interrupted", Tone::Bad),
        (Validity::Invalid, _) => ("not valid, failed", Tone::Bad),
        (Validity::Valid, _) => ("failed", Tone::Bad),
    };
    let is_breached = marks.split(", ").any(|mark| mark == "breached");
    let parts = [text, marks].into_iter().filter(|part| !part.is_empty());
    Badge { text: joined(parts, ", "), tone: if is_breached { Tone::Bad } else { tone } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_part_of_the_badge() {
        let of = |status, marks| {
            let Badge { text, tone } = badge(Validity::Valid, status, marks);
            (text, tone)
        };
        assert_eq!(of("done", ""), ("valid".to_owned(), Tone::Good));
        assert_eq!(of("done", "not steady"), ("valid, not steady".to_owned(), Tone::Warn));
        assert_eq!(of("done", "breached"), ("valid, breached".to_owned(), Tone::Bad));
        assert_eq!(of("interrupted", ""), ("valid, interrupted".to_owned(), Tone::Warn));
    }
}
