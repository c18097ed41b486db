//! The service manager: sockets it passes, notifications (`sd_listen_fds(3)`, `sd_notify(3)`), and the folder that it makes
//! for sockets. Without a service manager, only the last does anything.

pub(crate) mod accepting;
pub(crate) mod clients;
pub(crate) mod environment;
pub(crate) mod metrics;
pub(crate) mod privileges;
pub(crate) mod signals;
pub(crate) mod thread;

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use listenfd::ListenFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use sd_notify::NotifyState;

use crate::error::usage;

/// The longest wait for the service manager.
const BARRIER_PATIENCE: Duration = Duration::from_secs(2);

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

/// Whether a service manager that waits for a service started this process.
pub(crate) fn is_managed() -> bool {
    ["LISTEN_FDS", "NOTIFY_SOCKET"].iter().any(|variable| std::env::var_os(variable).is_some())
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

/// Makes another process of the service its main process, and waits a moment until the service manager has noted it: when
/// this process ends, that is not the end of the service.
pub(crate) fn hand_main_to(pid: u32) {
    tell(&[NotifyState::MainPid(pid)]);
    // The service manager may be gone, or older than this notification.
    let _ = await_service_manager();
}

/// Waits until earlier notifications have been processed (`sd_notify_barrier(3)`).
fn await_service_manager() -> io::Result<()> {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    let address = address.as_bytes();
    let address = match address.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(OsStr::from_bytes(address))?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    let (reader, writer) = io::pipe()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = [writer.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(&socket, &[IoSlice::new(b"BARRIER=1")], &mut control, SendFlags::NOSIGNAL)?;
    drop(writer);
    // The other end is closed once the notification has been processed.
    let timeout = Timespec::try_from(BARRIER_PATIENCE).map_err(io::Error::other)?;
    poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&timeout))?;
    Ok(())
}

/// Makes the folder of a socket, as `RuntimeDirectory=` does. The mode of the socket says who may connect.
///
/// # Errors
/// When it cannot be made.
pub(crate) fn make_socket_folder(socket: &Path) -> anyhow::Result<()> {
    let Some(folder) = socket.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(()) };
    let made =
        fs::create_dir(folder).and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o755)));
    match made {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error).with_context(|| {
            format!("cannot make its folder {}; make it, or name another path", folder.display())
        }),
        _ => Ok(()),
    }
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
