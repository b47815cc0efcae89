//! The division of a plan among several clients.

use super::error::{PlanError, refuse};
use super::policy::{Share, Stop};
use super::run::Plan;

impl Plan {
    /// Returns the number of sessions that this client opens: its share of all sessions.
    pub fn own_sessions(&self) -> u32 {
        self.share.map_or(self.sessions, |share| share.sessions_of(self.sessions))
    }

    /// Returns whether this client does the preparation for all clients: it is the only client, or the first.
    pub fn is_first(&self) -> bool {
        self.share.is_none_or(|share| share.agent == 0)
    }

    /// Returns the number of transactions after which a session of this client, counted from 0, ends. With several
    /// clients, each session has a fixed number of transactions, so that all clients together execute the same
    /// transactions, however many clients there are. `None` without such a number.
    pub fn transactions_of(&self, session: u64) -> Option<u64> {
        let (Stop::Transactions(count), Some(_)) = (self.stop, self.share) else {
            return None;
        };
        // The number of transactions of a warm-up is not fixed: it ends after its time.
        let own = u64::from(self.own_sessions().max(1));
        (self.warmup_s == 0.0).then(|| count / own + u64::from(session < count % own))
    }

    /// Returns the plan of one of several clients, with its share of the rate and of the number of transactions.
    /// Thresholds apply to the whole run, so the share has none; only the first client runs the queries of `--probe`.
    ///
    /// # Errors
    /// [`PlanError`] if the plan cannot be divided.
    pub fn shared(&self, share: Share) -> Result<Self, PlanError> {
        let Share { agent, agents } = share;
        require!(
            agent < agents,
            "--agent {agent} must be less than --agents {agents}: agents are counted from 0"
        );
        if let Some(option) = self.undivided() {
            return refuse(format!("{option} is not supported in a fleet"));
        }
        require!(
            agents <= self.sessions,
            "--agents {agents} exceeds --sessions {}: each agent needs at least one session",
            self.sessions
        );
        let own = share.sessions_of(self.sessions);
        let stop = match self.stop {
            Stop::Transactions(count) => Stop::Transactions(share.part_of(count, self.sessions)),
            Stop::Rows(count) => {
                let rows = share.rows_of(count, self.work.traits().batch.unwrap_or(1));
                Stop::Rows(rows.end - rows.start)
            }
            duration @ Stop::DurationS(_) => duration,
        };
        require!(
            !matches!(stop, Stop::Transactions(0) | Stop::Rows(0)),
            "there is less than one transaction, or batch, for some of the agents"
        );
        Ok(Self {
            share: Some(share),
            workers: self.workers.min(own),
            schedule: self.schedule.scaled(f64::from(own) / f64::from(self.sessions)),
            stop,
            thresholds: Vec::new(),
            abort_on_threshold: false,
            probes: if agent == 0 { self.probes.clone() } else { Vec::new() },
            profile_hz: self.profile_hz.filter(|_| agent == 0),
            instructions: self.instructions && agent == 0,
            ..self.clone()
        })
    }

    /// Returns the first option that several clients cannot share.
    fn undivided(&self) -> Option<String> {
        let traits = self.work.traits();
        let options = [
            (traits.is_undivided, format!("the workload {}", traits.name)),
            (self.keep_samples, "--graph".to_owned()),
            (!self.checkpoints_s.is_empty(), "--report-checkpoints".to_owned()),
            (matches!(self.stop, Stop::Rows(_)) && !traits.is_exact, "--total-rows".to_owned()),
            (traits.transaction_log.is_some(), "--log".to_owned()),
            // The CSV files are written for the sessions of one client, and only the data show that the load is complete.
            (traits.is_exact && traits.batch.is_none(), "--method copy-file".to_owned()),
            (traits.is_exact && !self.verify, "--no-verify".to_owned()),
            (traits.has_several_stages, "more than one method".to_owned()),
        ];
        options.into_iter().find_map(|(applies, option)| applies.then_some(option))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Schedule;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_shares_of_all_agents_are_the_plan(
            sessions in 1u32..200, agents in 1u32..50, count in 1u64..100_000,
        ) {
            prop_assume!(agents <= sessions && count >= u64::from(sessions));
            let plan = Plan {
                sessions,
                stop: Stop::Transactions(count),
                schedule: Schedule::Poisson { per_s: 1_000.0 },
                ..Plan::default()
            };
            let shares: Vec<Plan> =
                (0..agents).map(|agent| plan.shared(Share { agent, agents }).unwrap()).collect();
            let own: u32 = shares.iter().map(Plan::own_sessions).sum();
            prop_assert_eq!(own, sessions);
            let counted: u64 = shares.iter().map(|plan| match plan.stop {
                Stop::Transactions(count) => count,
                _ => 0,
            }).sum();
            prop_assert_eq!(counted, count);
            let per_s: f64 = shares.iter().filter_map(|plan| plan.schedule.per_s()).sum();
            prop_assert!((per_s - 1_000.0).abs() < 1e-6);
            for session in 0..sessions {
                let holders = shares.iter().filter(|plan| plan.share.unwrap().has(session)).count();
                prop_assert_eq!(holders, 1);
            }
            for plan in &shares {
                prop_assert!(plan.validate().is_ok());
            }
        }
    }

    #[test]
    fn refuses_plans_that_cannot_be_divided() {
        let refused = |plan: Plan, share: (u32, u32)| {
            let share = Share { agent: share.0, agents: share.1 };
            plan.shared(share).unwrap_err().to_string()
        };
        let plan = || Plan { sessions: 4, ..Plan::default() };
        assert!(refused(plan(), (2, 2)).contains("counted from 0"));
        assert!(refused(plan(), (0, 5)).contains("--agents 5 exceeds --sessions 4"));
        let graph = Plan { keep_samples: true, ..plan() };
        assert!(refused(graph, (0, 2)).contains("--graph is not supported"));
        let few = Plan { stop: Stop::Transactions(1), ..plan() };
        assert!(refused(few, (3, 4)).contains("less than one transaction"));
    }
}
