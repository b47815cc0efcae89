//! Brings the server into a defined state before a run: vacuumed, checkpointed, idle, cooled down.

use super::idle::{await_idle, pause};
use crate::host::Interrupt;
use crate::plan::{Plan, Vacuum};
use crate::run::{CleanStartError, checkpoint, vacuum};
use crate::server::{Connection, Feature, Server};
use crate::study::Between;
use crate::units::Span;

/// Applies the rules before a run, in this order: VACUUM, CHECKPOINT (which also writes what VACUUM changed), the wait
/// for idle devices, and the cool-down pause, which the first run does not need. `notify` receives notices for
/// the user.
///
/// # Errors
/// [`CleanStartError`] if a statement fails, or if the user interrupts. Devices that do not become idle are a notice.
pub fn prepare_run(
    server: &Server,
    rules: &Between,
    plan: &Plan,
    is_first: bool,
    interrupt: &Interrupt,
    notify: &dyn Fn(&str),
) -> Result<(), CleanStartError> {
    if rules.vacuum || rules.checkpoint || rules.idle_device_s.is_some() {
        let mut connection = Connection::open(&server.conninfo, interrupt)?;
        let dialect = connection.dialect();
        if rules.vacuum {
            vacuum(&mut connection, plan, Vacuum::Analyze, notify)?;
        }
        if rules.checkpoint && dialect.has(Feature::Heap) {
            checkpoint(&mut connection)?;
        } else if rules.checkpoint && is_first {
            notify(&format!("{} has no CHECKPOINT: not executed", dialect.flavor()));
        }
        if let Some(seconds) = rules.idle_device_s {
            let within = Span::of_seconds(seconds).0;
            let is_local = server.conninfo.is_local();
            await_idle(&mut connection, is_local, within, is_first, interrupt, notify)?;
        }
    }
    if !is_first {
        pause(Span::of_seconds(rules.cool_down_s).0, interrupt)?;
    }
    Ok(())
}
