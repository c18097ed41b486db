//! Connecting to an upstream: one upstream after another, address by address, and in order where it is busy.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Registry, Token};

use crate::io::socket::Side;
use crate::upstream::balance::Upstreams;
use crate::upstream::target::Target;

/// How soon to try a Unix socket again whose backlog is full, of which no event would tell. Only the first of those
/// that wait for it tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);
/// How long a connection may try upstreams that are all known to be down, since its client is better told soon.
const DOWN_PATIENCE: Duration = Duration::from_millis(500);

/// What a worker needs to connect: the upstreams, and who waits for them.
#[derive(Debug)]
pub(crate) struct Ways {
    pub(crate) upstreams: Arc<Upstreams>,
    queues: Queues,
    /// Where the choice between upstreams that are as good begins next.
    turn: usize,
}

/// Those that wait for room in the backlogs of Unix sockets, in the order in which they came: whoever came later
/// would otherwise overtake those who have been waiting.
#[derive(Debug)]
struct Queues {
    /// The keys of connections by their places, for each upstream.
    waiting: Box<[BTreeMap<u64, usize>]>,
    next_place: u64,
    /// Connections that have come first in their queue.
    roused: Vec<usize>,
}

/// An attempt to reach an upstream.
#[derive(Debug)]
pub(crate) struct Dial {
    began_at: Instant,
    /// When to give up.
    deadline: Instant,
    /// The upstreams that were tried before, in bits.
    tried: u64,
    attempt: Option<Attempt>,
}

/// One upstream's turn.
#[derive(Debug)]
struct Attempt {
    upstream: usize,
    until: Instant,
    /// The address to try next.
    next: usize,
    /// The address being tried, and until when.
    trying: Option<(Side, Instant)>,
    /// The place in the queue for a Unix socket.
    place: Option<u64>,
}

/// How far an attempt has got.
#[derive(Debug)]
pub(crate) enum Dialled {
    /// The upstream of this index is there.
    Established(Side, usize),
    /// Nothing to do before an event comes, or this moment.
    Wait(Instant),
}

/// The connection that dials, as the event loop knows it, and the time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) key: usize,
    pub(crate) token: Token,
    pub(crate) now: Instant,
}

impl Ways {
    /// For the worker number `worker`.
    pub(crate) fn new(upstreams: Arc<Upstreams>, worker: usize) -> Self {
        let waiting = (0..upstreams.len()).map(|_| BTreeMap::new()).collect();
        let queues = Queues { waiting, next_place: 0, roused: Vec::new() };
        Self { upstreams, queues, turn: worker }
    }

    /// Takes the keys of connections that have come first in their queue and must be turned to. One of them may
    /// have been closed since.
    pub(crate) fn take_roused(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.queues.roused)
    }
}

impl Queues {
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
            self.roused.extend(self.waiting[upstream].first_key_value().map(|(_, &key)| key));
        }
    }
}

impl Dial {
    pub(crate) fn new(now: Instant, timeout: Duration) -> Self {
        Self { began_at: now, deadline: now + timeout, tried: 0, attempt: None }
    }

    pub(crate) fn began_at(&self) -> Instant {
        self.began_at
    }

    pub(crate) fn note(&mut self, event: &Event) {
        if let Some(Attempt { trying: Some((side, _)), .. }) = &mut self.attempt {
            side.note(event);
        }
    }

    /// Does what can be done now.
    ///
    /// # Errors
    /// The last upstream's, when none is left to be tried, or the time is up.
    pub(crate) fn advance(&mut self, ways: &mut Ways, caller: Caller<'_>) -> io::Result<Dialled> {
        let mut failed = io::ErrorKind::TimedOut.into();
        loop {
            if self.attempt.is_none() {
                self.attempt = self.choose(ways, caller.now);
            }
            let Some(attempt) = &mut self.attempt else { return Err(failed) };
            let target = ways.upstreams.target(attempt.upstream);
            let result = match target {
                Target::Unix(addr) => {
                    let connect = || Side::connect_unix(addr, caller.registry, caller.token);
                    attempt.advance_unix(&mut ways.queues, caller, connect)
                }
                Target::Tcp(addrs) => attempt.advance_tcp(addrs, caller),
            };
            match result {
                Ok(Dialled::Established(side, upstream)) => {
                    ways.upstreams.succeeded(upstream, caller.now);
                    attempt.leave_queue(&mut ways.queues);
                    // The connection is counted until its end.
                    self.attempt = None;
                    return Ok(Dialled::Established(side, upstream));
                }
                Ok(wait) => return Ok(wait),
                Err(error) => {
                    self.tried |= 1 << attempt.upstream;
                    ways.upstreams.failed(attempt.upstream, &error, caller.now);
                    self.abandon(ways);
                    failed = error;
                }
            }
        }
    }

    /// Leaves the upstream that is being tried.
    pub(crate) fn abandon(&mut self, ways: &mut Ways) {
        if let Some(mut attempt) = self.attempt.take() {
            attempt.leave_queue(&mut ways.queues);
            ways.upstreams.leave(attempt.upstream);
        }
    }

    fn choose(&mut self, ways: &mut Ways, now: Instant) -> Option<Attempt> {
        if now >= self.deadline {
            return None;
        }
        let choice = ways.upstreams.choose(self.tried, ways.turn, now)?;
        ways.turn = ways.turn.wrapping_add(1);
        if !choice.is_up {
            self.deadline = self.deadline.min(now + DOWN_PATIENCE);
        }
        // One that never answers must leave time for the others.
        let others = ways.upstreams.up(self.tried | 1 << choice.index, now);
        let share = u32::try_from(others + 1).unwrap_or(u32::MAX);
        let until = now + (self.deadline - now) / share;
        Some(Attempt { upstream: choice.index, until, next: 0, trying: None, place: None })
    }
}

impl Attempt {
    fn advance_unix(
        &mut self,
        queues: &mut Queues,
        caller: Caller<'_>,
        connect: impl FnOnce() -> io::Result<Side>,
    ) -> io::Result<Dialled> {
        let is_next = match self.place {
            Some(place) => queues.is_first(self.upstream, place),
            None => queues.waiting[self.upstream].is_empty(),
        };
        let error = if is_next { connect() } else { Err(io::ErrorKind::WouldBlock.into()) };
        match error {
            Ok(side) => Ok(Dialled::Established(side, self.upstream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && caller.now < self.until => {
                self.place.get_or_insert_with(|| queues.join(self.upstream, caller.key));
                let again_at = if is_next { caller.now + RETRY_INTERVAL } else { self.until };
                Ok(Dialled::Wait(again_at.min(self.until)))
            }
            Err(error) => Err(error),
        }
    }

    fn leave_queue(&mut self, queues: &mut Queues) {
        if let Some(place) = self.place.take() {
            queues.leave(self.upstream, place);
        }
    }

    fn advance_tcp(&mut self, addrs: &[std::net::SocketAddr], caller: Caller<'_>) -> io::Result<Dialled> {
        let now = caller.now;
        let mut failed = match self.trying.take() {
            None => io::ErrorKind::TimedOut.into(),
            Some((side, until)) => match side.connected() {
                Ok(true) => return Ok(Dialled::Established(side, self.upstream)),
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
            let until = now + self.until.saturating_duration_since(now) / left;
            self.next += 1;
            match Side::connect_tcp(addr, caller.registry, caller.token) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notices::Notices;
    use crate::upstream::target::Upstream;
    use socket2::{Domain, SockAddr, Socket, Type};
    use std::os::unix::net::UnixStream;

    struct Stage {
        _dir: tempfile::TempDir,
        listener: Socket,
        ways: Ways,
        poll: mio::Poll,
    }

    impl Stage {
        /// A Unix socket with a backlog of one, and that one is taken.
        fn full() -> (Self, UnixStream) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("app.sock");
            let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
            listener.listen(0).unwrap();
            let filler = UnixStream::connect(&path).unwrap();
            let notices = Arc::new(Notices::default());
            let upstreams = Upstreams::resolve(&[Upstream::Unix(path)], notices).unwrap();
            let ways = Ways::new(Arc::new(upstreams), 0);
            (Self { _dir: dir, listener, ways, poll: mio::Poll::new().unwrap() }, filler)
        }

        fn advance(&mut self, dial: &mut Dial, key: usize, now: Instant) -> io::Result<Dialled> {
            let caller = Caller { registry: self.poll.registry(), key, token: Token(key), now };
            dial.advance(&mut self.ways, caller)
        }
    }

    fn is_waiting(dialled: &io::Result<Dialled>) -> bool {
        matches!(dialled, Ok(Dialled::Wait(_)))
    }

    fn is_established(dialled: &io::Result<Dialled>) -> bool {
        matches!(dialled, Ok(Dialled::Established(..)))
    }

    #[test]
    fn a_full_backlog_is_asked_by_the_first_alone_and_not_beyond_the_deadline() {
        let (mut stage, _filler) = Stage::full();
        let start = Instant::now();
        let [mut first, mut second] = [0; 2].map(|_| Dial::new(start, Duration::from_secs(1)));
        let Ok(Dialled::Wait(until)) = stage.advance(&mut first, 1, start) else { panic!("not waiting") };
        assert_eq!(until - start, RETRY_INTERVAL);
        let Ok(Dialled::Wait(until)) = stage.advance(&mut second, 2, start) else { panic!("not waiting") };
        assert_eq!(until - start, Duration::from_secs(1), "it has nothing to ask for");
        assert!(is_waiting(&stage.advance(&mut first, 1, start + Duration::from_millis(999))));
        let error = stage.advance(&mut first, 1, start + Duration::from_secs(1)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(stage.ways.take_roused(), [2]);
    }

    #[test]
    fn those_that_wait_are_served_in_the_order_in_which_they_came() {
        let (mut stage, _filler) = Stage::full();
        let now = Instant::now();
        let mut dials: Vec<_> = (0..4).map(|_| Dial::new(now, Duration::from_secs(1))).collect();
        for (key, dial) in dials.iter_mut().enumerate().take(3) {
            assert!(is_waiting(&stage.advance(dial, key, now)));
        }
        let mut held = vec![stage.listener.accept().unwrap()];
        assert!(is_waiting(&stage.advance(&mut dials[2], 2, now)), "there is room, but not for the third");
        assert!(is_waiting(&stage.advance(&mut dials[3], 3, now)), "nor for one that has just come");
        // The second one's client leaves.
        dials[1].abandon(&mut stage.ways);
        for key in [0, 2, 3] {
            assert!(is_established(&stage.advance(&mut dials[key], key, now)), "{key}");
            held.push(stage.listener.accept().unwrap());
            let next = if key == 0 { 2 } else { 3 };
            assert_eq!(stage.ways.take_roused(), if key == 3 { vec![] } else { vec![next] });
        }
    }
}
