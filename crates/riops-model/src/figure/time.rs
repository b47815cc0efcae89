//! Where the time of a transaction goes.
//!
//! In a closed loop, N sessions that execute X transactions per second spend N / X on each (Little, "A Proof for the Queuing
//! Formula: L = λW", 1961). The part in the server is sampled; the part between two transactions is the difference to the
//! service time. With a rate, a session also waits for its next transaction, and the time is the service time.

use super::Summary;
use crate::plan::Schedule;
use crate::record::{CostRecord, StageKind, StageRecord, TimePart};

/// The time of a transaction, by the activity of its session.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionTime {
    /// Total in microseconds: the sum of the parts.
    pub us: f64,
    /// The parts, in the order of [`TimePart::ALL`].
    pub parts: Vec<PartTime>,
    /// Whether the sessions also spent time in transactions that failed, or did not finish.
    pub with_unsuccessful: bool,
}

/// A part of the time of a transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartTime {
    /// Activity of the session.
    pub part: TimePart,
    /// The time, in microseconds. A part that is not sampled is computed as a difference and may be slightly negative.
    pub us: f64,
    /// Half the width of its 95% interval, which covers the sampling; 0 for a part that was measured.
    pub reach_us: f64,
}

impl TransactionTime {
    /// Returns the time of a part; 0 if it did not occur.
    pub fn part_us(&self, part: TimePart) -> f64 {
        self.parts.iter().find(|entry| entry.part == part).map_or(0.0, |entry| entry.us)
    }

    /// Returns the time without the think time and without the time between two transactions, in microseconds.
    pub fn busy_us(&self) -> f64 {
        let idle = [TimePart::Client, TimePart::Connecting, TimePart::Think];
        self.us - idle.into_iter().map(|part| self.part_us(part)).sum::<f64>()
    }

    /// Returns the share of these parts in the busy time, 0 to 1.
    pub fn busy_share(&self, parts: &[TimePart]) -> f64 {
        let busy_us = self.busy_us();
        let us: f64 = parts.iter().map(|part| self.part_us(*part)).sum();
        if busy_us > 0.0 { (us / busy_us).clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// From this share of the time without locks on, what else the sessions waited for explains how long locks are held.
const HOLDERS_SHARE: f64 = 0.5;

impl Summary<'_> {
    /// The longest wait of the sessions that did not wait for a lock, as a share of their time: they may have held the lock.
    /// `None` if it explains little, or if most of the locks were held by sessions of others.
    pub fn lock_holders_wait(&self) -> Option<(TimePart, f64)> {
        let blockers = self.stage.probes.as_ref().map_or(&[][..], |probes| &probes.blockers);
        let signed = blockers.iter().map(|by| if by.is_own { by.share } else { -by.share });
        if signed.sum::<f64>() < 0.0 {
            return None;
        }
        let time = self.transaction_time()?;
        let others_us = time.us - time.part_us(TimePart::Lock);
        let waits = [TimePart::Wal, TimePart::Read, TimePart::Network, TimePart::RunQueue];
        let shares = waits.map(|part| (part, time.part_us(part) / others_us));
        let longest = shares.into_iter().max_by(|(_, one), (_, other)| one.total_cmp(other));
        longest.filter(|(_, share)| *share >= HOLDERS_SHARE)
    }

    /// Where the time of a transaction went; `None` if the sessions were not sampled, or too rarely.
    pub fn transaction_time(&self) -> Option<TransactionTime> {
        let stage = self.stage;
        let waits = self.waits()?;
        let sampled = &stage.probes.as_ref()?.session_time;
        // Records of earlier releases have only the waits.
        let is_split = !sampled.is_empty()
            || waits.iter().all(|wait| TimePart::of_event(&wait.event).is_none());
        if !is_split || stage.transactions == 0 {
            return None;
        }
        let each_us = |seconds: f64| seconds * 1e6 / stage.transactions as f64;
        // The time of all sessions, of which the samples have shares.
        let sessions_us = each_us(stage.seconds * f64::from(stage.sessions));
        let service_us = each_us(stage.database_s?);
        // A session that is idle in a transaction gives the server no work.
        let of_server = sampled.iter().filter(|time| time.part != TimePart::Network);
        let mut parts: Vec<PartTime> = of_server
            .map(|time| PartTime {
                part: time.part,
                us: time.share * sessions_us,
                reach_us: time.reach.unwrap_or(time.share) * sessions_us,
            })
            .collect();
        let waits_us: f64 =
            parts.iter().filter(|part| part.part != TimePart::Cpu).map(|part| part.us).sum();
        let failed_us = each_us(failed_s(stage));
        let think_us = each_us(think_s(stage));
        let mut busy_us = service_us + failed_us;
        if let Some(cost) = &stage.cost {
            measure_cpu(&mut parts, cost, busy_us - think_us - waits_us);
        }
        let server_us: f64 = parts.iter().map(|part| part.us).sum();
        let reach_us: f64 = parts.iter().map(|part| part.reach_us * part.reach_us).sum();
        let reach_us = reach_us.sqrt();
        // The sessions were sampled in transactions that had not finished, too.
        let is_unfinished = server_us + think_us - reach_us > busy_us;
        if is_unfinished {
            busy_us = server_us + think_us;
        }
        let is_closed = self.record.plan.schedule == Schedule::Closed;
        let whole_us =
            if is_closed && self.record.plan.pipeline <= 1 && stage.kind == StageKind::Loop {
                sessions_us.max(busy_us)
            } else {
                busy_us
            };
        let between_us = whole_us - busy_us;
        let connecting_us = each_us(connecting_s(stage)).min(between_us);
        let measured = [
            (TimePart::Client, between_us - connecting_us),
            (TimePart::Connecting, connecting_us),
            (TimePart::Think, think_us),
        ];
        let measured = measured.into_iter().filter(|(_, us)| *us > 0.0);
        parts.extend(measured.map(|(part, us)| PartTime { part, us, reach_us: 0.0 }));
        if stage.statement.is_none() {
            let us = busy_us - think_us - server_us;
            parts.push(PartTime { part: TimePart::Network, us, reach_us });
        }
        parts.sort_by_key(|part| part.part);
        Some(TransactionTime {
            us: parts.iter().map(|part| part.us).sum(),
            parts,
            with_unsuccessful: is_unfinished || failed_us > 0.0,
        })
    }
}

/// The time of failed transactions, in seconds. The service times include only successful ones.
fn failed_s(stage: &StageRecord) -> f64 {
    let failed = stage.session_loop.errors.iter().filter(|error| error.count > error.retried);
    failed
        .map(|error| error.attempts_s * (error.count - error.retried) as f64 / error.count as f64)
        .sum()
}

/// The time in which sessions connected again, in seconds.
fn connecting_s(stage: &StageRecord) -> f64 {
    let connects = stage.session_loop.connect_us.as_ref();
    connects.map_or(0.0, |latency| latency.mean * latency.count as f64 / 1e6)
}

/// The time of the waits in the script, in seconds.
fn think_s(stage: &StageRecord) -> f64 {
    let sleeps =
        stage.session_loop.commands.iter().filter(|command| command.title.starts_with("\\sleep"));
    let times = sleeps.filter_map(|command| command.service_us.as_ref());
    times.map(|time| time.mean * time.count as f64 / 1e6).sum()
}

/// Sets the CPU time of the server and its wait for a processor, if they were measured, as far as the sampled waits leave room for
/// them: a process that receives or sends a message runs, but its session is idle; and on a busy machine, samples are taken rather
/// when others do not run. If the sessions were active without a wait event for longer, beyond the sampling error, the rest is a
/// separate part.
fn measure_cpu(parts: &mut Vec<PartTime>, cost: &CostRecord, most_us: f64) {
    let Some(cpu_us) = cost.server_cpu_us else {
        return;
    };
    let at = parts.iter().position(|part| part.part == TimePart::Cpu);
    let sampled = at.map(|at| parts.swap_remove(at));
    let (sampled_us, reach_us) = sampled.map_or((0.0, 0.0), |part| (part.us, part.reach_us));
    // Without scheduler statistics, the rest may be a wait for a processor.
    let queue_us = cost.server_run_queue_us;
    let measured_us = (cpu_us + queue_us.unwrap_or(0.0)).min(most_us);
    let is_active = queue_us.is_some() && sampled_us - reach_us > measured_us;
    let mut add = |part, us, reach_us| {
        if us > 0.0 {
            parts.push(PartTime { part, us, reach_us });
        }
    };
    // A difference within the sampling error counts as CPU.
    let us = if is_active { measured_us } else { measured_us.max(sampled_us) };
    let queue_us = queue_us.unwrap_or(0.0).min(us - cpu_us.min(us));
    let is_measured = us <= measured_us;
    add(TimePart::Cpu, us - queue_us, if is_measured { 0.0 } else { reach_us });
    add(TimePart::RunQueue, queue_us, 0.0);
    if is_active {
        add(TimePart::Active, sampled_us - measured_us, reach_us);
    }
}
