//! Connecting to the upstream, address by address.

use std::io;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Registry, Token};

use crate::stream::Side;
use crate::upstream::Target;

/// How soon to try a Unix socket again whose backlog is full, of which no event would tell. It doubles with each
/// time, since many that wait for a slow upstream would otherwise take a core for asking alone.
const RETRY_INTERVAL_MIN: Duration = Duration::from_millis(5);
/// Longest such interval; what a connection may lose once there is room again.
const RETRY_INTERVAL_MAX: Duration = Duration::from_millis(80);

/// An attempt to reach the upstream.
#[derive(Debug)]
pub(crate) struct Dial {
    began_at: Instant,
    /// When to give up.
    deadline: Instant,
    /// The address to try next.
    next: usize,
    /// The address being tried, and until when.
    trying: Option<(Side, Instant)>,
    /// How long to wait after the next full backlog.
    retry_interval: Duration,
}

/// How far an attempt has got.
#[derive(Debug)]
pub(crate) enum Dialled {
    /// The upstream is there.
    Established(Side),
    /// Nothing to do before an event comes, or this moment.
    Wait(Instant),
}

impl Dial {
    pub(crate) fn new(now: Instant, timeout: Duration) -> Self {
        let retry_interval = RETRY_INTERVAL_MIN;
        Self { began_at: now, deadline: now + timeout, next: 0, trying: None, retry_interval }
    }

    pub(crate) fn began_at(&self) -> Instant {
        self.began_at
    }

    pub(crate) fn note(&mut self, event: &Event) {
        if let Some((side, _)) = &mut self.trying {
            side.note(event);
        }
    }

    /// Does what can be done now.
    ///
    /// # Errors
    /// The last address's, when no address is left to be tried, or the time is up.
    pub(crate) fn advance(
        &mut self,
        target: &Target,
        registry: &Registry,
        token: Token,
        now: Instant,
    ) -> io::Result<Dialled> {
        match target {
            Target::Unix(addr) => match Side::connect_unix(addr, registry, token) {
                Ok(side) => Ok(Dialled::Established(side)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && now < self.deadline => {
                    let again_at = (now + self.retry_interval).min(self.deadline);
                    self.retry_interval = (self.retry_interval * 2).min(RETRY_INTERVAL_MAX);
                    Ok(Dialled::Wait(again_at))
                }
                Err(error) => Err(error),
            },
            Target::Tcp(addrs) => {
                let mut failed = match self.trying.take() {
                    None => io::ErrorKind::TimedOut.into(),
                    Some((side, until)) => match side.connected() {
                        Ok(true) => return Ok(Dialled::Established(side)),
                        Ok(false) if now < until => {
                            self.trying = Some((side, until));
                            return Ok(Dialled::Wait(until));
                        }
                        Ok(false) => io::ErrorKind::TimedOut.into(),
                        Err(error) => error,
                    },
                };
                while let Some(&addr) = addrs.get(self.next) {
                    // An address that never answers must leave time for the others.
                    let left = u32::try_from(addrs.len() - self.next).unwrap_or(u32::MAX);
                    let until = now + self.deadline.saturating_duration_since(now) / left;
                    self.next += 1;
                    match Side::connect_tcp(addr, registry, token) {
                        Ok(side) => {
                            self.trying = Some((side, until));
                            return Ok(Dialled::Wait(until));
                        }
                        Err(error) => failed = error,
                    }
                }
                Err(failed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};

    #[test]
    fn a_full_backlog_is_asked_less_and_less_often_and_not_beyond_the_deadline() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
        socket.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let _filler = UnixStream::connect(&path).unwrap();
        let target = Target::Unix(UnixAddr::from_pathname(&path).unwrap());
        let poll = mio::Poll::new().unwrap();
        let start = Instant::now();
        let mut dial = Dial::new(start, Duration::from_secs(1));
        let (mut now, mut waits) = (start, Vec::new());
        while let Ok(Dialled::Wait(until)) = dial.advance(&target, poll.registry(), Token(0), now) {
            waits.push((until - now).as_millis());
            now = until;
        }
        assert_eq!(waits[..6], [5, 10, 20, 40, 80, 80]);
        assert_eq!(waits.iter().sum::<u128>(), 1000, "it is tried a last time at the deadline");
    }
}
