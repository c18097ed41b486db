//! Time in nanoseconds of `CLOCK_MONOTONIC`, and a timer that is exact to some microseconds.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// A duration in nanoseconds; longer than 584 years is cut.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Now, in nanoseconds of `CLOCK_MONOTONIC`.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

/// Wakes a poll at a given moment. The poll's own timeout is rounded up to milliseconds, too coarse for a schedule
/// of thousands of requests a second.
#[derive(Debug)]
pub(crate) struct Timer {
    fd: OwnedFd,
    armed_ns: u64,
}

impl Timer {
    /// A timer that wakes the poll of `registry` with `token`.
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { fd, armed_ns: 0 })
    }

    /// Sets the moment, unless it is set already. A moment in the past wakes at once. It need not be read after
    /// it has fired: readiness is edge-triggered, and setting it again clears it.
    pub(crate) fn set(&mut self, at_ns: u64) -> io::Result<()> {
        if self.armed_ns == at_ns {
            return Ok(());
        }
        self.armed_ns = at_ns;
        arm(&self.fd, at_ns)
    }

    /// Waits for events until the moment `at_ns`, or for `patience`; a signal ends the wait too.
    pub(crate) fn wait(
        &mut self,
        poll: &mut Poll,
        events: &mut Events,
        at_ns: Option<u64>,
        patience: Option<Duration>,
    ) -> io::Result<()> {
        if let Some(at_ns) = at_ns {
            self.set(at_ns)?;
        }
        match poll.poll(events, patience) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            other => other,
        }
    }
}

fn arm(fd: &OwnedFd, at_ns: u64) -> io::Result<()> {
    let value =
        Timespec { tv_sec: (at_ns / SECOND_NS) as i64, tv_nsec: i64::from((at_ns % SECOND_NS) as u32) };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    timerfd_settime(fd, TimerfdTimerFlags::ABSTIME, &once)?;
    Ok(())
}
