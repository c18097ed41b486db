//! The service manager: sockets it passes, and notifications (`sd_listen_fds(3)`, `sd_notify(3)`). Without a service
//! manager, none of this does anything.

pub(crate) mod clients;
pub(crate) mod metrics;
pub(crate) mod privileges;
pub(crate) mod signals;

use std::net::TcpListener;
use std::time::{Duration, Instant};

use listenfd::ListenFd;
use sd_notify::NotifyState;

use crate::cli::usage;

/// The listening sockets passed by `LISTEN_FDS` and `LISTEN_PID`. To be called once, while there is only one thread,
/// since it clears these variables.
///
/// # Errors
/// When something other than a TCP socket was passed.
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

/// Notifies that the service is ready.
pub(crate) fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Notifies that the service is stopping.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

/// Notifies that certificates and keys are read again; [`ready`] must follow.
pub(crate) fn reloading() {
    // systemd before 253 ignores the time. Without a clock, the notification goes without it.
    let now = NotifyState::monotonic_usec_now().ok();
    let states: Vec<_> = [NotifyState::Reloading].into_iter().chain(now).collect();
    tell(&states);
}

fn tell(states: &[NotifyState<'_>]) {
    // The service manager may be gone. The program serves all the same.
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
        // At half its timeout, as its manual page recommends.
        let every = sd_notify::watchdog_enabled().map(|limit| limit / 2);
        Self { every, told_at: Instant::now() }
    }

    /// Sends the keep-alive if it is due, unless `is_alive` returns false.
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
