//! Connecting to the upstream, address by address.

use std::io;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Registry, Token};

use crate::stream::Side;
use crate::upstream::Target;

/// How soon to try a Unix socket again whose backlog is full, of which no event would tell.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

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
        Self { began_at: now, deadline: now + timeout, next: 0, trying: None }
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
                    Ok(Dialled::Wait((now + RETRY_INTERVAL).min(self.deadline)))
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
