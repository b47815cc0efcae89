//! The pages of the dashboard, one file each.

pub(super) mod edit;
pub(super) mod experiments;
pub(super) mod history;
pub(super) mod list;
pub(super) mod live;
pub(super) mod run;
