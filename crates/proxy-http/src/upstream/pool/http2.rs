//! Streams of HTTP/2: when a request gets one, waits for one, or opens another connection.

use std::io;
use std::time::{Duration, Instant};

use proxy_core::UpstreamTarget;

use super::{AcquiredConn, ConnChoice, UpstreamPool};
use crate::upstream::http1::connection::PooledConn;
use crate::upstream::http2::connection::ConnNews;
use crate::upstream::http2::connections::Http2Stream;

/// How soon to try again to open a connection beside others.
const REOPEN_INTERVAL: Duration = Duration::from_millis(100);

/// Whether another connection to an upstream is being opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Opening {
    #[default]
    No,
    UnderWay,
    /// Not before then, since that has failed while there were others.
    PutOff(Instant),
}

/// What a request does that needs a stream.
#[derive(Debug)]
pub(super) enum StreamAttempt {
    Begin(Http2Stream),
    Wait,
    /// It opens another connection.
    Open,
}

impl UpstreamPool {
    /// Nobody waits for another connection while those that are there have room, except a request that wants its own.
    pub(super) fn attempt_stream(&mut self, upstream: usize, choice: ConnChoice) -> StreamAttempt {
        let opening = self.of_upstream[upstream].opening;
        let is_under_way = opening != Opening::No || self.http2.is_beginning(upstream);
        let has_room = self.open() < self.connections_max;
        if choice == ConnChoice::Own && has_room {
            match opening {
                Opening::No => return StreamAttempt::Open,
                Opening::UnderWay => return StreamAttempt::Wait,
                Opening::PutOff(_) => {}
            }
        }
        let may_open = !is_under_way && has_room;
        let addresses = match self.upstreams.target(upstream) {
            UpstreamTarget::Tcp(addresses) if may_open => addresses.len(),
            UpstreamTarget::Tcp(_) | UpstreamTarget::Unix(_) => 1,
        };
        match self.http2.join(upstream, addresses) {
            Some(stream) => StreamAttempt::Begin(stream),
            None if is_under_way => StreamAttempt::Wait,
            None => StreamAttempt::Open,
        }
    }

    /// Begins to use a new connection, which is connected. An upstream of HTTP/2 must say its first word in time.
    ///
    /// # Errors
    /// If HTTP/2 cannot begin on it.
    pub(crate) fn established(&mut self, key: usize, begin_timeout: Duration) -> io::Result<AcquiredConn> {
        let upstream = self.connections[key].upstream;
        if !self.upstreams.is_http2(upstream) {
            return Ok(AcquiredConn::Http1(key));
        }
        let PooledConn { stream, addresses, .. } = self.connections.remove(key);
        self.of_upstream[upstream].opening = Opening::No;
        let begun = self.http2.insert(stream, upstream, addresses, (self.now, begin_timeout));
        if begun.is_err() {
            self.wake_queues();
        }
        begun.map(AcquiredConn::Http2)
    }

    /// Notes that a connection could not be opened. True if requests can wait for others, and another is opened later;
    /// otherwise those fail that wait.
    pub(crate) fn has_other_conns(&mut self, upstream: usize, kind: io::ErrorKind) -> bool {
        if !self.upstreams.is_http2(upstream) {
            return false;
        }
        let others = self.http2.has_begun_conn(upstream) || self.http2.is_beginning(upstream);
        let of = &mut self.of_upstream[upstream];
        if !others && of.opening != Opening::UnderWay {
            of.queue.fail(kind);
            return false;
        }
        if of.opening == Opening::No {
            of.opening = Opening::PutOff(self.now + REOPEN_INTERVAL);
        }
        of.queue.wake_all();
        true
    }

    /// Polls the connections that have something to do. Failures are told for upstreams without another connection.
    pub(crate) fn run_http2(&mut self) -> Vec<ConnNews> {
        let mut news = self.http2.run(self.now);
        for news in &mut news {
            if let ConnNews::Failed { upstream, error, has_others } = news {
                *has_others = self.has_other_conns(*upstream, error.kind());
            }
        }
        if self.http2.take_changed() {
            self.wake_queues();
            // Many streams may have become free at once.
            let of_http2 = (0..self.of_upstream.len()).filter(|&index| self.upstreams.is_http2(index));
            of_http2.for_each(|index| self.of_upstream[index].queue.wake_all());
        }
        news
    }

    /// Ends a stream.
    pub(crate) fn end_stream(&mut self, key: usize) {
        self.http2.leave(key, self.now);
        self.wake_queues();
    }

    /// Lets requests open connections again that this was put off for.
    pub(super) fn end_put_off(&mut self, now: Instant) {
        for of in &mut self.of_upstream {
            if let Opening::PutOff(until) = of.opening
                && until <= now
            {
                of.opening = Opening::No;
                of.queue.wake_first();
            }
        }
    }
}
