//! The final report of a worker.

use super::super::tally::SessionTally;
use super::report::{Starts, WorkerReport};
use super::{Clock, Worker, cpu};
use crate::units::Nanos;

impl<C: Clock> Worker<C> {
    pub(super) fn finish(mut self) -> WorkerReport {
        self.note_time(self.clock.now());
        self.close_log();
        self.report.recorder.finish();
        self.report.unsent = std::mem::take(&mut self.link.unsent);
        let cpu_end_s = self.cpu_at_end_s.unwrap_or_else(cpu::thread_seconds);
        self.report.cpu_s = cpu_end_s - self.cpu_at_start_s.unwrap_or(cpu_end_s);
        self.report.sessions = (0..)
            .zip(&mut self.sessions)
            .map(|(position, session)| SessionTally {
                number: self.share.number(position),
                node: session.node,
                process: session.process,
                backend: session.backend.take(),
                started: session.started,
                operations: std::mem::take(&mut session.tallies),
            })
            .collect();
        let by_count = self.limit.ended_by_count();
        // After the maximum duration of a count, nothing starts.
        let end = if by_count { self.report.last_end } else { self.limit.end() };
        let before_end = Nanos(end.0.saturating_sub(1));
        if let Some(arrivals) = &mut self.arrivals {
            // The last interval ends with the measurement.
            self.report.recorder.set_backlog(arrivals.backlog(before_end), self.busy_at_end);
        }
        let measured = end > self.limit.measure_start();
        self.report.starts = self.arrivals.as_mut().map(|arrivals| {
            let taken = self.report.starts_taken;
            // A run that stops by count has one intended start per claimed transaction.
            let due = if by_count || !measured {
                taken
            } else {
                arrivals.due(before_end).saturating_sub(self.due_before)
            };
            let waiting = due.saturating_sub(taken);
            let oldest_wait = if waiting > 0 { end.since(arrivals.next()) } else { Nanos(0) };
            Starts { intended: due, waiting, oldest_wait, backlog_before: self.backlog_before }
        });
        self.report
    }
}
