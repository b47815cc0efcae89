//! The part of a plan that one of several clients runs.
//!
//! The parts together are the plan: session n belongs to the agent n modulo the number of agents, wherever it runs, and has
//! the same keys and random numbers there. So the same seed gives the same statements whatever the number of agents is.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::policy::{RateStep, Schedule};

/// Which of several clients runs a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of the agent, from 0.
    pub agent: u32,
    /// Number of agents.
    pub agents: u32,
}

impl Share {
    /// Whether a session of the whole plan, counted from 0, belongs to the agent.
    #[must_use]
    pub fn has(self, session: u32) -> bool {
        session.checked_rem(self.agents) == Some(self.agent)
    }

    /// Returns the number of its sessions, of all sessions of the plan.
    #[must_use]
    pub fn sessions_of(self, all: u32) -> u32 {
        all.saturating_sub(self.agent).div_ceil(self.agents.max(1))
    }

    /// Returns the number in the whole plan of one of its sessions, both counted from 0.
    #[must_use]
    pub fn session(self, own: u64) -> u64 {
        u64::from(self.agent) + own * u64::from(self.agents)
    }

    /// Returns the rows that the agent loads, of all rows in batches of this size: whole batches, one after another.
    #[must_use]
    pub fn rows_of(self, rows: u64, batch: u64) -> Range<u64> {
        let batches = rows.div_ceil(batch.max(1));
        let first = |agent: u32| {
            let number = u128::from(batches) * u128::from(agent) / u128::from(self.agents.max(1));
            u64::try_from(number).unwrap_or(batches).saturating_mul(batch).min(rows)
        };
        first(self.agent)..first(self.agent + 1)
    }

    /// Returns the part of `count` units that belongs to the agent if each of all sessions has the same number, and the
    /// first ones one more for the rest.
    pub(super) fn part_of(self, count: u64, sessions: u32) -> u64 {
        let (own, all) = (u64::from(self.sessions_of(sessions)), u64::from(sessions.max(1)));
        #[expect(clippy::cast_possible_truncation, reason = "less than the number of sessions")]
        let rest = (count % all) as u32;
        own * (count / all) + u64::from(self.sessions_of(rest))
    }
}

impl Schedule {
    /// Returns the same schedule with this share of its rate.
    #[must_use]
    pub fn scaled(&self, share: f64) -> Self {
        match self {
            Self::Closed => Self::Closed,
            Self::Constant { per_s } => Self::Constant { per_s: per_s * share },
            Self::Poisson { per_s } => Self::Poisson { per_s: per_s * share },
            Self::Profile { steps, poisson } => {
                let scale = |step: &RateStep| RateStep {
                    from_per_s: step.from_per_s * share,
                    to_per_s: step.to_per_s * share,
                    ..*step
                };
                Self::Profile { steps: steps.iter().map(scale).collect(), poisson: *poisson }
            }
        }
    }
}
