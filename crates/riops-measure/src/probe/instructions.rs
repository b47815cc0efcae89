//! The instructions that the server executes in user mode, counted by perf.

use std::collections::BTreeSet;

use super::perf::{PerfError, Running, perf, try_perf};
use super::processes::Place;

/// Option that requests them.
const OPTION: &str = "--instructions";
/// The event of perf.
const EVENT: &str = "instructions:u";

/// Counts the instructions of the server during a measurement.
#[derive(Debug)]
pub struct Instructions {
    server: i32,
    running: Option<Running>,
    /// Length of the last count, in seconds.
    seconds: f64,
    /// Instructions per second in it.
    pub(super) per_s: Option<f64>,
}

impl Instructions {
    /// Finds out whether they can be counted.
    ///
    /// # Errors
    /// [`PerfError`] if they cannot.
    pub fn new(place: Place) -> Result<Self, PerfError> {
        let Place::Here(server) = place else {
            return Err(PerfError::NotLocal(OPTION));
        };
        let text = try_perf(OPTION, stat(&BTreeSet::from([server])))?;
        if text.contains("not supported") {
            return Err(PerfError::NotSupported);
        }
        Ok(Self { server, running: None, seconds: 0.0, per_s: None })
    }

    pub(super) fn start(&mut self) {
        self.per_s = None;
        self.running = Running::start(self.server, |folder, processes| {
            let mut command = stat(processes);
            command.arg("-o").arg(folder.path().join(EVENT)).arg("--");
            command
        });
    }

    /// Ends the count.
    pub(super) fn end(&mut self) {
        self.seconds = self.running.as_mut().map_or(0.0, Running::end);
    }

    /// Waits for the count and reads it.
    pub(super) fn close(&mut self) {
        let folder = self.running.take().map(Running::close);
        let text =
            folder.and_then(|folder| std::fs::read_to_string(folder.path().join(EVENT)).ok());
        self.per_s = text.and_then(|text| Some(count(&text)? / self.seconds));
    }
}

/// The command that counts the instructions of these processes and of the processes that they start, so also of new sessions.
fn stat(processes: &BTreeSet<i32>) -> std::process::Command {
    perf(&["stat", "-x,", "-e", EVENT], Some(processes))
}

/// Returns the count in the output of `perf stat -x,`: a line `COUNT,UNIT,EVENT,…` after comments.
fn count(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(EVENT))?;
    line.split(',').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_the_first_field_of_its_line() {
        let started = "# started on Sun Nov 29 17:00:00 2026\n\n";
        let counted = format!("{started}123456789,,instructions:u,2000000,100.00,,\n");
        assert_eq!(count(&counted), Some(123_456_789.0));
        for missing in ["<not counted>", "<not supported>"] {
            assert_eq!(count(&format!("{started}{missing},,instructions:u,0,100.00,,\n")), None);
        }
        assert_eq!(count(started), None);
    }

    #[test]
    fn a_server_elsewhere_is_refused() {
        let error = Instructions::new(Place::Elsewhere).unwrap_err();
        assert!(error.to_string().starts_with("--instructions requires a server on this machine"));
    }
}
