//! The service manager: sockets that it hands over, and what it is told (`sd_listen_fds(3)`, `sd_notify(3)`). Under
//! none of them, none of this does anything.

pub(crate) mod privileges;
pub(crate) mod signals;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use listenfd::ListenFd;
use sd_notify::NotifyState;

use crate::cli::usage;

/// The listening sockets that were handed over, by `LISTEN_FDS` and `LISTEN_PID`. To be called once, before there is
/// any other thread, since it clears these.
///
/// # Errors
/// When something else than a TCP socket was handed over.
pub(crate) fn inherited() -> anyhow::Result<Vec<TcpListener>> {
    let mut handed = ListenFd::from_env();
    let count = handed.len();
    (0..count).filter_map(|i| handed.take_tcp_listener(i).transpose()).collect::<Result<_, _>>().map_err(
        |error| {
            usage(format!(
                "LISTEN_FDS: {error}; expected TCP sockets (ListenStream= with an address and port)"
            ))
        },
    )
}

/// Says that everything is served.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Says that what is there is served to its end, and nothing else.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Says that certificates and the like are read again; [`ready`] must follow.
pub(crate) fn reloading() {
    // A manager before version 253 does not know the time, and a clock that cannot be read is no reason to be silent.
    let now = NotifyState::monotonic_usec_now().ok();
    let states: Vec<_> = [NotifyState::Reloading].into_iter().chain(now).collect();
    tell(&states);
}

fn tell(states: &[NotifyState<'_>]) {
    // Whoever started the program may have gone, and it serves all the same.
    let _ = sd_notify::notify(states);
}

/// The watchdog of the service manager, if it has set one.
#[derive(Debug)]
pub(crate) struct Watchdog {
    every: Option<Duration>,
    told_at: Instant,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        // Twice as often as it wants, as its manual page says.
        let every = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        Self { every, told_at: Instant::now() }
    }

    /// Tells it, when it is due, that the program is alive, unless `is_alive` says otherwise.
    pub(crate) fn feed(&mut self, is_alive: impl FnOnce() -> bool) {
        let now = Instant::now();
        if self.every.is_some_and(|every| now - self.told_at >= every) {
            self.told_at = now;
            if is_alive() {
                tell(&[NotifyState::Watchdog]);
            }
        }
    }
}
