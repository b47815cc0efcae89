//! Waits until the server has completed the I/O of earlier work.
//!
//! riops observes the devices of a server on this machine directly, so that the I/O of other programs counts, too. For
//! any other server, it sees only the I/O that PostgreSQL reports.

use std::time::{Duration, Instant};

use crate::host::Interrupt;
use crate::probe::device::{Device, DeviceCounters};
use crate::probe::locations::Locations;
use crate::probe::topology::Topology;
use crate::server::{Connection, ConnectionError, Feature, shares_files};

/// Maximum busy share of an idle device.
const BUSY_SHARE_MAX: f64 = 0.05;
/// Maximum write rate of an idle device, in MB (10^6 bytes) per second. Without a visible device: maximum rate at which
/// the server reads, writes and adds to the WAL.
const MB_S_MAX: f64 = 1.0;
/// Length of the intervals in which the activity is measured.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of consecutive idle intervals after which the wait ends.
const IDLE_INTERVALS: u32 = 2;

const ACTIVITY: &str = include_str!("../../sql/experiment/activity.sql");
const ACTIVITY_17: &str = include_str!("../../sql/experiment/activity_17.sql");
const ACTIVITY_15: &str = include_str!("../../sql/experiment/activity_15.sql");

/// The observed quantity.
enum Source<'a> {
    Devices(Device),
    Server(&'a mut Connection, &'static str),
}

/// Totals since some start.
enum Totals {
    Devices(DeviceCounters),
    /// Bytes that the server read, wrote, and added to the WAL.
    Server(f64),
}

/// Activity in an interval.
#[derive(Debug, Clone, PartialEq)]
struct Load {
    /// Name of the devices; absent if only the server reports it.
    device: Option<String>,
    /// Share of the time with a request in flight, 0 to 1.
    busy_share: f64,
    mb_s: f64,
}

impl Load {
    fn is_idle(&self) -> bool {
        self.busy_share <= BUSY_SHARE_MAX && self.mb_s <= MB_S_MAX
    }
}

impl std::fmt::Display for Load {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.device {
            Some(device) => write!(
                formatter,
                "{device}: {:.0}% busy, {:.1} MB/s written",
                self.busy_share * 100.0,
                self.mb_s
            ),
            None => write!(formatter, "{:.1} MB/s read, written and added to the WAL", self.mb_s),
        }
    }
}

/// Waits until the devices of the server are idle for two consecutive seconds, at most for `within`; then a notice says
/// that they are not. The first run also gets a notice if nothing can be observed.
pub(super) fn await_idle(
    connection: &mut Connection,
    is_local: bool,
    within: Duration,
    is_first: bool,
    interrupt: &Interrupt,
    notify: &dyn Fn(&str),
) -> Result<(), ConnectionError> {
    let deadline = Instant::now() + within;
    let observed = match Source::find(connection, is_local)? {
        Some(mut source) => source.read()?.map(|before| (source, before)),
        None => None,
    };
    let Some((mut source, mut before)) = observed else {
        if is_first {
            notify("the devices of the server cannot be observed: not waiting until they are idle");
        }
        return Ok(());
    };
    let mut wait = Wait::default();
    loop {
        let (start, rest) = (Instant::now(), deadline.saturating_duration_since(Instant::now()));
        pause(INTERVAL.min(rest), interrupt)?;
        let Some(now) = source.read()? else { return Ok(()) };
        // A shorter interval is not conclusive.
        if rest < INTERVAL {
            wait.give_up(within, notify);
            return Ok(());
        }
        let load = source.load(&before, &now, start.elapsed().as_secs_f64());
        before = now;
        if wait.is_over(load, notify) {
            return Ok(());
        }
    }
}

/// The observations up to now.
#[derive(Default)]
struct Wait {
    idle_intervals: u32,
    is_reported: bool,
    last: Option<Load>,
}

impl Wait {
    /// Returns whether the devices are idle. The first interval in which they are not is reported.
    fn is_over(&mut self, load: Load, notify: &dyn Fn(&str)) -> bool {
        if load.is_idle() {
            self.idle_intervals += 1;
        } else {
            self.idle_intervals = 0;
            if !self.is_reported {
                self.is_reported = true;
                notify(&format!("waiting until the devices of the server are idle ({load})"));
            }
        }
        self.last = Some(load);
        self.idle_intervals >= IDLE_INTERVALS
    }

    /// Reports that the devices did not become idle in time.
    fn give_up(&self, within: Duration, notify: &dyn Fn(&str)) {
        if let Some(load) = self.last.as_ref().filter(|load| !load.is_idle()) {
            let seconds = within.as_secs_f64();
            notify(&format!(
                "warning: the devices of the server are not idle after {seconds} s ({load})"
            ));
        }
    }
}

impl<'a> Source<'a> {
    fn find(
        connection: &'a mut Connection,
        is_local: bool,
    ) -> Result<Option<Self>, ConnectionError> {
        if let Some(device) = devices(connection, is_local)? {
            return Ok(Some(Self::Devices(device)));
        }
        // The statistics of other servers do not contain the work of their storage.
        if !connection.dialect().has(Feature::Heap) {
            return Ok(None);
        }
        let sql = match connection.dialect().version {
            180_000.. => ACTIVITY,
            160_000.. => ACTIVITY_17,
            _ => ACTIVITY_15,
        };
        Ok(Some(Self::Server(connection, sql)))
    }

    /// Returns the current totals; `None` if they cannot be read.
    fn read(&mut self) -> Result<Option<Totals>, ConnectionError> {
        match self {
            Self::Devices(device) => Ok(device.read().map(Totals::Devices)),
            Self::Server(connection, sql) => {
                let row = match connection.query(sql) {
                    Err(ConnectionError::Server(_)) => return Ok(None),
                    rows => rows?.into_iter().next().unwrap_or_default(),
                };
                let numbers = row.iter().map(|value| value.as_ref()?.parse::<f64>().ok());
                Ok(numbers.sum::<Option<f64>>().map(Totals::Server))
            }
        }
    }

    fn load(&self, before: &Totals, now: &Totals, seconds: f64) -> Load {
        match (self, before, now) {
            (Self::Devices(device), Totals::Devices(before), Totals::Devices(now)) => {
                let usage = device.usage(&now.since(before), seconds);
                let (busy_share, mb_s) = (usage.busy_share, usage.write_mb_s);
                Load { device: Some(usage.name), busy_share, mb_s }
            }
            (_, Totals::Server(before), Totals::Server(now)) => {
                Load { device: None, busy_share: 0.0, mb_s: (now - before) / 1e6 / seconds }
            }
            _ => Load { device: None, busy_share: 0.0, mb_s: 0.0 },
        }
    }
}

/// Returns the disks with the data and the WAL of a server on this machine.
fn devices(connection: &mut Connection, is_local: bool) -> Result<Option<Device>, ConnectionError> {
    if !is_local || !shares_files(connection)? {
        return Ok(None);
    }
    let data = match connection.query_value("show data_directory") {
        Err(ConnectionError::Server(_)) => None,
        data => data?,
    };
    let Some(data) = data else { return Ok(None) };
    let locations = Locations::read(connection, data.as_ref(), &[])?;
    let disks = locations.devices(&Topology::of_this_machine()).disks;
    Ok(Device::of_blocks(disks.into_iter().map(|disk| disk.disk).collect()))
}

/// Sleeps until the time has passed. An interruption is an error.
pub(super) fn pause(time: Duration, interrupt: &Interrupt) -> Result<(), ConnectionError> {
    interrupt.pause(time).then_some(()).ok_or(ConnectionError::Interrupted)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn load(busy_share: f64, mb_s: f64) -> Load {
        Load { device: Some("vda".to_owned()), busy_share, mb_s }
    }

    #[test]
    fn the_wait_ends_after_two_consecutive_idle_intervals() {
        let told = RefCell::new(Vec::new());
        let notify = |text: &str| told.borrow_mut().push(text.to_owned());
        let mut wait = Wait::default();
        let observed = [(0.0, 0.9), (0.4, 0.0), (0.05, 1.0), (0.0, 1.1), (0.04, 0.0), (0.0, 0.0)];
        let over: Vec<_> =
            observed.iter().map(|&(busy, mb_s)| wait.is_over(load(busy, mb_s), &notify)).collect();
        assert_eq!(over, [false, false, false, false, false, true]);
        let first =
            "waiting until the devices of the server are idle (vda: 40% busy, 0.0 MB/s written)";
        assert_eq!(*told.borrow(), [first]);
    }

    #[test]
    fn devices_that_are_still_busy_at_the_end_are_reported() {
        let told = RefCell::new(Vec::new());
        let notify = |text: &str| told.borrow_mut().push(text.to_owned());
        let mut wait = Wait::default();
        wait.is_over(load(0.0, 0.0), &notify);
        wait.give_up(Duration::from_secs(5), &notify);
        assert_eq!(*told.borrow(), [""; 0], "idle, but not for two intervals");
        let server = Load { device: None, busy_share: 0.0, mb_s: 12.34 };
        wait.is_over(server, &notify);
        wait.give_up(Duration::from_secs(5), &notify);
        assert_eq!(
            told.borrow()[1],
            "warning: the devices of the server are not idle after 5 s (12.3 MB/s read, written and added to the WAL)"
        );
    }
}
