//! A timer that wakes a poller with nanosecond resolution. The poller's own timeout
//! has a resolution of one millisecond.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::units::Nanos;

/// A one-shot timer that can be set again.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    /// Time at which the timer fires; `None` before it is first set.
    set_for: Option<Nanos>,
}

impl Alarm {
    /// Creates a timer that wakes the poller with `token`.
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { timer, set_for: None })
    }

    /// Sets the timer to fire at `at`. Does nothing if it is already set to a future `at`.
    pub(super) fn set(&mut self, at: Nanos, now: Nanos) -> io::Result<()> {
        if self.set_for == Some(at) && at > now {
            return Ok(());
        }
        self.set_for = Some(at);
        // Zero would disarm the timer.
        let wait = at.since(now).0.max(1);
        let nanos = |nanos: u64| nanos.try_into().unwrap_or(i64::MAX);
        let value = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec {
                tv_sec: nanos(wait / 1_000_000_000),
                tv_nsec: nanos(wait % 1_000_000_000),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value)?;
        Ok(())
    }
}
