//! A timer that wakes a poller with nanosecond resolution. The timeout of epoll has a resolution of one millisecond,
//! the timeout of kqueue a resolution of one nanosecond.

use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
use {
    mio::unix::SourceFd,
    rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
    std::os::fd::{AsRawFd, OwnedFd},
};

use mio::{Registry, Token};

use riops_model::units::Nanos;

/// A one-shot timer that can be set again.
#[cfg(target_os = "linux")]
#[derive(Debug)]
pub(super) struct Alarm {
    timer: OwnedFd,
    /// Time at which the timer fires; `None` before it is first set.
    set_for: Option<Nanos>,
}

#[cfg(target_os = "linux")]
impl Alarm {
    /// Creates a timer that wakes the poller with `token`.
    pub(super) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, mio::Interest::READABLE)?;
        Ok(Self { timer, set_for: None })
    }

    /// Prepares a wait until `at` and returns the timeout for the poll: zero if `at` is due, else none, and
    /// the timer wakes the poll. Makes a system call only if the timer must fire at another time than before.
    pub(super) fn wait_until(&mut self, at: Nanos, now: Nanos) -> io::Result<Option<Duration>> {
        if at <= now {
            return Ok(Some(Duration::ZERO));
        }
        // The timer fires after `at`, so it has not fired yet.
        if self.set_for == Some(at) {
            return Ok(None);
        }
        self.set_for = Some(at);
        let wait = Duration::from(at.since(now));
        let it_value = Timespec::try_from(wait).map_err(io::Error::other)?;
        let value = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &value)?;
        Ok(None)
    }
}

/// The timeout of the poller.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub(super) struct Alarm;

#[cfg(not(target_os = "linux"))]
impl Alarm {
    #[expect(clippy::unnecessary_wraps, reason = "a timer may fail")]
    pub(super) fn new(_: &Registry, _: Token) -> io::Result<Self> {
        Ok(Self)
    }

    /// Returns the timeout for the poll.
    #[expect(
        clippy::unnecessary_wraps,
        clippy::unused_self,
        reason = "a timer has state and may fail"
    )]
    pub(super) fn wait_until(&mut self, at: Nanos, now: Nanos) -> io::Result<Option<Duration>> {
        Ok(Some(at.since(now).into()))
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use mio::Poll;
    use rustix::time::timerfd_gettime;

    const HOUR: u64 = 3_600_000_000_000;

    /// Returns the seconds until the timer fires; 0 if it is not set.
    fn left_s(alarm: &Alarm) -> i64 {
        timerfd_gettime(&alarm.timer).unwrap().it_value.tv_sec
    }

    #[test]
    fn sets_the_timer_only_for_a_new_time_in_the_future() {
        let poll = Poll::new().unwrap();
        let mut alarm = Alarm::new(poll.registry(), Token(0)).unwrap();
        for at in [Nanos(7), Nanos(8)] {
            assert_eq!(alarm.wait_until(at, Nanos(8)).unwrap(), Some(Duration::ZERO));
            assert_eq!(left_s(&alarm), 0);
        }
        assert_eq!(alarm.wait_until(Nanos(2 * HOUR), Nanos(0)).unwrap(), None);
        assert!(left_s(&alarm) > 7_000);
        // Setting it again would make it fire an hour from now.
        assert_eq!(alarm.wait_until(Nanos(2 * HOUR), Nanos(HOUR)).unwrap(), None);
        assert!(left_s(&alarm) > 7_000);
        assert_eq!(alarm.wait_until(Nanos(3 * HOUR), Nanos(2 * HOUR)).unwrap(), None);
        assert!((1_800..=3_600).contains(&left_s(&alarm)));
    }
}
