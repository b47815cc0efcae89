//! Where the time of a transaction goes.
//!
//! In a closed loop, N sessions that execute X transactions per second spend N / X on each (Little, "A Proof for the Queuing
//! Formula: L = λW", 1961). What part of it they spend in the server is sampled, what they spend between two transactions is the
//! difference to the service time. With a rate, a session also waits for its next transaction, and the time is the service time.

use super::Summary;
use crate::plan::Schedule;
use crate::record::{CostRecord, TimePart};

/// The time of a transaction, by what its session did.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionTime {
    /// The whole, in microseconds: the sum of the parts.
    pub us: f64,
    /// The parts, in the order of [`TimePart::ALL`].
    pub parts: Vec<PartTime>,
}

/// A part of the time of a transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PartTime {
    /// What the session did.
    pub part: TimePart,
    /// The time, in microseconds. What is not sampled is a difference and may be slightly negative.
    pub us: f64,
    /// Half the width of its 95% interval, which covers the sampling; 0 for a part that was measured.
    pub reach_us: f64,
}

impl TransactionTime {
    /// Returns the time of a part; 0 if it did not occur.
    pub fn of(&self, part: TimePart) -> f64 {
        self.parts.iter().find(|each| each.part == part).map_or(0.0, |each| each.us)
    }
}

impl Summary<'_> {
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
        // Idle in a transaction is no work of the server.
        let of_server = sampled.iter().filter(|each| each.part != TimePart::Network);
        let mut parts: Vec<PartTime> = of_server
            .map(|each| PartTime {
                part: each.part,
                us: each.share * sessions_us,
                reach_us: each.reach.unwrap_or(each.share) * sessions_us,
            })
            .collect();
        let waits_us: f64 =
            parts.iter().filter(|each| each.part != TimePart::Cpu).map(|each| each.us).sum();
        if let Some(cost) = &stage.cost {
            measure_cpu(&mut parts, cost, service_us - waits_us);
        }
        let server_us: f64 = parts.iter().map(|each| each.us).sum();
        let reach_us: f64 = parts.iter().map(|each| each.reach_us * each.reach_us).sum();
        let is_closed = self.record.plan.schedule == Schedule::Closed;
        let whole_us = if is_closed && self.record.plan.pipeline <= 1 && stage.kind == "loop" {
            sessions_us.max(service_us)
        } else {
            service_us
        };
        let (part, us) = (TimePart::Network, service_us - server_us);
        let network = PartTime { part, us, reach_us: reach_us.sqrt() };
        let client = whole_us - service_us;
        if client > 0.0 {
            parts.push(PartTime { part: TimePart::Client, us: client, reach_us: 0.0 });
        }
        if stage.statement.is_none() {
            parts.push(network);
        }
        parts.sort_by_key(|each| each.part);
        Some(TransactionTime { us: parts.iter().map(|each| each.us).sum(), parts })
    }
}

/// Sets the CPU time of the server and its wait for a processor, if they were measured, as far as the sampled waits leave room for
/// them: a process that receives or sends a message runs, but its session is idle; and on a busy machine, samples are taken rather
/// when others do not run.
fn measure_cpu(parts: &mut Vec<PartTime>, cost: &CostRecord, most_us: f64) {
    let Some(cpu_us) = cost.server_cpu_us else {
        return;
    };
    let queue_us = cost.server_run_queue_us.unwrap_or(0.0);
    // Active without a wait event: running, or waiting for a processor.
    let at = parts.iter().position(|each| each.part == TimePart::Cpu);
    let sampled = at.map(|at| parts.swap_remove(at));
    let sampled_us = sampled.map_or(0.0, |each| each.us);
    // What is more than that is CPU time of system calls with a wait event.
    let (us, reach_us) = match (cpu_us + queue_us).min(most_us) {
        measured_us if measured_us > sampled_us => (measured_us, 0.0),
        _ => (sampled_us, sampled.map_or(0.0, |each| each.reach_us)),
    };
    let queue_us = queue_us.min(us - cpu_us.min(us));
    parts.push(PartTime { part: TimePart::Cpu, us: us - queue_us, reach_us });
    if queue_us > 0.0 {
        parts.push(PartTime { part: TimePart::RunQueue, us: queue_us, reach_us: 0.0 });
    }
}
