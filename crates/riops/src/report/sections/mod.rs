//! Parts of the closing text that every workload shares.

pub(super) mod agents;
pub(super) mod bottleneck;
pub(super) mod condition;
pub(super) mod cost;
pub(super) mod failures;
pub(super) mod mix;
pub(super) mod nodes;
pub(super) mod profile;
pub(super) mod proof;
pub(super) mod queries;
pub(super) mod sources;
pub(super) mod statements;
pub(super) mod steadiness;
pub(super) mod time;
pub(super) mod waits;
pub(super) mod why;
pub(super) mod window;
