//! Accepting connections on a socket that another process takes over.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

/// Pause after an error of accept, such as a lack of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Ends the accepting of connections on a socket, which stays open. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct AcceptStop(Arc<OwnedFd>);

impl AcceptStop {
    /// # Errors
    /// If the kernel refuses a descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    pub(crate) fn stop(&self) {
        // Only fails if it was stopped some 2^64 times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Waits for a connection; false if no more are accepted.
    fn wait(&self, listener: impl AsFd) -> bool {
        let mut fds =
            [PollFd::new(&listener, PollFlags::IN), PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
        // An interruption, or an error of the socket that accept will report.
        let _ = poll(&mut fds, None);
        fds[1].revents().is_empty()
    }

    /// Takes connections of a socket that does not block, until it ends. `accept` takes one, and `serve` has it.
    pub(crate) fn accept_until<L: AsFd, S>(
        &self,
        listener: &L,
        accept: impl Fn(&L) -> io::Result<S>,
        mut serve: impl FnMut(S),
    ) {
        while self.wait(listener) {
            match accept(listener) {
                Ok(stream) => serve(stream),
                // Another process that has the socket took it.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }
}
