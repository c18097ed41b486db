//! Connecting to an upstream: one candidate after another, address by address, in a queue where it is busy.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Registry, Token};
use records::delta::UpstreamDeltas;

use crate::io::socket::Socket;
use crate::upstream::balance::choice::{Candidates, UpstreamChoice};
use crate::upstream::balance::{UPSTREAMS_MAX, Upstreams};
use crate::upstream::counting::count_failed_attempt;
use crate::upstream::names::addresses::{AddressAttempts, UpstreamAddresses};
use crate::upstream::stream::{UpstreamStream, WorkerTls};
use crate::upstream::target::UpstreamTarget;

/// How soon to try a Unix socket again whose backlog is full, which no event reports. Only the first
/// connection in its queue tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// How long a connection may try upstreams that are all known to be down: its client should learn soon.
const DOWN_PATIENCE: Duration = Duration::from_millis(500);

/// A worker's data for connecting: the upstreams, and the waiting connections.
#[derive(Debug)]
pub(crate) struct UpstreamDialer {
    pub(crate) upstreams: Arc<Upstreams>,
    queues: BacklogQueues,
    /// Where the choice between equally loaded upstreams begins next.
    turn: usize,
}

/// Connections that wait for room in the backlogs of Unix sockets, first come, first served.
#[derive(Debug)]
struct BacklogQueues {
    /// The keys of connections by their places, for each upstream.
    waiting: Box<[BTreeMap<u64, usize>]>,
    next_place: u64,
    /// Connections that have become first in their queue.
    woken: Vec<usize>,
}

/// An attempt to reach an upstream, over all candidates.
#[derive(Debug)]
pub(crate) struct ConnectAttempt {
    began_at: Instant,
    /// The deadline of all attempts.
    deadline: Instant,
    candidates: Candidates,
    candidate: Option<UpstreamCandidate>,
    /// The PROXY header: it goes out in the clear, before TLS.
    header: Vec<u8>,
}

#[derive(Debug)]
struct UpstreamCandidate {
    choice: UpstreamChoice,
    began_at: Instant,
    until: Instant,
    /// The addresses of a TCP upstream, once one is tried.
    addresses: Option<AddressAttempts>,
    /// The address being tried, and until when.
    trying: Option<(UpstreamStream, Instant)>,
    /// The place in the queue for a Unix socket.
    place: Option<u64>,
}

/// What trying the next address of an upstream has come to.
enum NextAddress {
    /// A socket, and until when its address is tried.
    Connecting(Socket, Instant),
    /// The backlog of a Unix socket is full until then.
    Busy(Instant),
}

#[derive(Debug)]
pub(crate) enum ConnectProgress {
    /// Connected to this upstream, which was tried since.
    Established { stream: UpstreamStream, choice: UpstreamChoice, began_at: Instant },
    /// Nothing to do before an event or this moment.
    Wait(Instant),
}

/// The connection that needs an upstream: its key and token in the event loop, and the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DialContext<'a> {
    pub(crate) registry: &'a Rc<Registry>,
    pub(crate) key: usize,
    pub(crate) token: Token,
    pub(crate) now: Instant,
    pub(crate) tls: &'a Rc<WorkerTls>,
}

impl UpstreamDialer {
    pub(crate) fn new(upstreams: Arc<Upstreams>, worker: usize) -> Self {
        let waiting = (0..UPSTREAMS_MAX).map(|_| BTreeMap::new()).collect();
        let queues = BacklogQueues { waiting, next_place: 0, woken: Vec::new() };
        Self { upstreams, queues, turn: worker }
    }

    /// Takes the keys of connections that have become first in their queue. One of them may have been closed
    /// since.
    pub(crate) fn take_woken(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.queues.woken)
    }
}

impl BacklogQueues {
    fn join(&mut self, upstream: usize, key: usize) -> u64 {
        self.next_place += 1;
        self.waiting[upstream].insert(self.next_place, key);
        self.next_place
    }

    fn is_first(&self, upstream: usize, place: u64) -> bool {
        self.waiting[upstream].first_key_value().is_some_and(|(&first, _)| first == place)
    }

    fn leave(&mut self, upstream: usize, place: u64) {
        let was_first = self.is_first(upstream, place);
        self.waiting[upstream].remove(&place);
        if was_first {
            self.woken.extend(self.waiting[upstream].first_key_value().map(|(_, &key)| key));
        }
    }
}

impl ConnectAttempt {
    /// An attempt to reach one of these upstreams.
    pub(crate) fn new(now: Instant, timeout: Duration, candidates: Candidates, header: Vec<u8>) -> Self {
        Self { began_at: now, deadline: now + timeout, candidates, candidate: None, header }
    }

    /// The PROXY header that a plaintext upstream has yet to be sent.
    pub(crate) fn header(&self) -> &[u8] {
        &self.header
    }

    pub(crate) fn began_at(&self) -> Instant {
        self.began_at
    }

    pub(crate) fn note(&mut self, event: &Event) {
        if let Some(UpstreamCandidate { trying: Some((stream, _)), .. }) = &mut self.candidate {
            stream.note(event);
        }
    }

    /// Advances as far as possible now, and counts failed attempts.
    ///
    /// # Errors
    /// The last candidate's, when none is left to try, or the time is up.
    pub(crate) fn advance(
        &mut self,
        dialer: &mut UpstreamDialer,
        caller: DialContext<'_>,
        counts: &mut UpstreamDeltas,
    ) -> io::Result<ConnectProgress> {
        let mut failed = None;
        loop {
            if self.candidate.is_none() {
                self.candidate = self.choose(dialer, caller.now);
            }
            let Some(candidate) = &mut self.candidate else {
                return Err(failed.unwrap_or_else(|| self.without_candidate(caller.now)));
            };
            match candidate.advance(&dialer.upstreams, &mut dialer.queues, caller, &self.header) {
                Ok(established @ ConnectProgress::Established { .. }) => {
                    dialer.upstreams.succeeded(candidate.choice.index, caller.now);
                    // The connection is counted until its end.
                    self.candidate = None;
                    return Ok(established);
                }
                Ok(wait) => return Ok(wait),
                Err(error) => {
                    self.candidates.tried |= 1 << candidate.choice.index;
                    dialer.upstreams.failed(candidate.choice.index, &error, caller.now);
                    count_failed_attempt(counts.at(candidate.choice.index), &error);
                    self.abandon(dialer);
                    failed = Some(error);
                }
            }
        }
    }

    /// Why it has no upstream to try, although none has failed.
    #[cold]
    fn without_candidate(&self, now: Instant) -> io::Error {
        if now >= self.deadline {
            return io::ErrorKind::TimedOut.into();
        }
        io::Error::other("all upstreams are drained")
    }

    /// Leaves the upstream that is being tried.
    pub(crate) fn abandon(&mut self, dialer: &mut UpstreamDialer) {
        if let Some(mut candidate) = self.candidate.take() {
            candidate.leave_queue(&mut dialer.queues);
            dialer.upstreams.leave(candidate.choice);
        }
    }

    fn choose(&mut self, dialer: &mut UpstreamDialer, now: Instant) -> Option<UpstreamCandidate> {
        if now >= self.deadline {
            return None;
        }
        let choice = dialer.upstreams.choose(self.candidates, dialer.turn, now)?;
        dialer.turn = dialer.turn.wrapping_add(1);
        if !choice.is_up {
            self.deadline = self.deadline.min(now + DOWN_PATIENCE);
        }
        // An upstream that never answers must leave time for the others.
        let tried = self.candidates.tried | 1 << choice.index;
        let others = dialer.upstreams.up(Candidates { tried, ..self.candidates }, now);
        let share = u32::try_from(others + 1).unwrap_or(u32::MAX);
        let until = now + (self.deadline - now) / share;
        // The first candidate begins with the attempt: both times to connect are the same. `now` may be older, as it is when
        // events were taken from the kernel.
        let is_first = self.candidates.tried == 0;
        let began_at = if is_first { self.began_at } else { Instant::now() };
        Some(UpstreamCandidate { choice, began_at, until, addresses: None, trying: None, place: None })
    }
}

impl UpstreamCandidate {
    fn advance(
        &mut self,
        upstreams: &Upstreams,
        queues: &mut BacklogQueues,
        caller: DialContext<'_>,
        header: &[u8],
    ) -> io::Result<ConnectProgress> {
        loop {
            let mut failed = None;
            if let Some((mut stream, until)) = self.trying.take() {
                match stream.establish() {
                    Ok(true) => {
                        self.addresses.iter().for_each(AddressAttempts::succeeded);
                        let Self { choice, began_at, .. } = *self;
                        return Ok(ConnectProgress::Established { stream, choice, began_at });
                    }
                    Ok(false) if caller.now < until => {
                        self.trying = Some((stream, until));
                        return Ok(ConnectProgress::Wait(until));
                    }
                    Ok(false) => failed = Some(io::ErrorKind::TimedOut.into()),
                    Err(error) => failed = Some(error),
                }
            }
            let next = match (upstreams.target(self.choice.index), failed) {
                // A path is a single address.
                (UpstreamTarget::Unix(_), Some(error)) => Err(error),
                (UpstreamTarget::Unix(addr), None) => self.connect_unix(addr, queues, caller),
                (UpstreamTarget::Tcp(addresses), failed) => {
                    self.connect_tcp(addresses, upstreams, failed, caller)
                }
            };
            match next? {
                NextAddress::Connecting(socket, until) => {
                    let stream = upstreams.stream(self.choice.index, socket, caller.tls)?;
                    self.trying = Some((stream.after(header), until));
                }
                NextAddress::Busy(again_at) => return Ok(ConnectProgress::Wait(again_at)),
            }
        }
    }

    fn connect_unix(
        &mut self,
        addr: &UnixAddr,
        queues: &mut BacklogQueues,
        caller: DialContext<'_>,
    ) -> io::Result<NextAddress> {
        let is_next = match self.place {
            Some(place) => queues.is_first(self.choice.index, place),
            None => queues.waiting[self.choice.index].is_empty(),
        };
        let connected = if is_next {
            Socket::connect_unix(addr, caller.registry, caller.token)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        };
        match connected {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && caller.now < self.until => {
                self.place.get_or_insert_with(|| queues.join(self.choice.index, caller.key));
                let again_at = if is_next { caller.now + RETRY_INTERVAL } else { self.until };
                Ok(NextAddress::Busy(again_at.min(self.until)))
            }
            connected => {
                self.leave_queue(queues);
                Ok(NextAddress::Connecting(connected?, self.until))
            }
        }
    }

    fn leave_queue(&mut self, queues: &mut BacklogQueues) {
        if let Some(place) = self.place.take() {
            queues.leave(self.choice.index, place);
        }
    }

    fn connect_tcp(
        &mut self,
        addresses: &UpstreamAddresses,
        upstreams: &Upstreams,
        failed: Option<io::Error>,
        caller: DialContext<'_>,
    ) -> io::Result<NextAddress> {
        let addresses = self.addresses.get_or_insert_with(|| addresses.attempts());
        let at = (caller.registry, caller.token);
        let socket = upstreams.connect_next(self.choice.index, addresses, at, failed, caller.now)?;
        // An address that never answers must leave time for the others.
        let left = u32::try_from(addresses.left() + 1).unwrap_or(u32::MAX);
        let until = caller.now + self.until.saturating_duration_since(caller.now) / left;
        Ok(NextAddress::Connecting(socket, until))
    }
}

#[cfg(test)]
mod tests;
