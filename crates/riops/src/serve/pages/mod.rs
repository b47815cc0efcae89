//! The pages of the dashboard.

pub(super) mod edit;
pub(super) mod history;
pub(super) mod list;
pub(super) mod live;
pub(super) mod stored;
