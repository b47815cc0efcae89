//! A timer that wakes a poll to the nanosecond, where the poll's own time-out counts milliseconds.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::units::Nanos;

/// One timer, set anew each time.
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    /// When it will ring; `None` where it will not.
    set_for: Option<Nanos>,
}

impl Alarm {
    /// A timer that rings as `token`.
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { timer, set_for: None })
    }

    /// Rings at `at`, of which `now` is the present; does nothing where that is set already.
    pub(super) fn set(&mut self, at: Nanos, now: Nanos) -> io::Result<()> {
        if self.set_for == Some(at) && at > now {
            return Ok(());
        }
        self.set_for = Some(at);
        // Zero would switch it off.
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
