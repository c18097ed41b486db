//! What a request is sent on: a connection, or a stream of one, that it alone uses.

use std::rc::Rc;

use proxy_core::UpstreamChoice;

use super::http2::connections::Http2Stream;
use crate::worker::HttpWorker;

/// What a request is sent on.
#[derive(Debug)]
pub(crate) enum Acquired {
    Http1(Lease),
    Http2(StreamLease),
}

/// A connection that one request owns. Dropping the lease closes the connection.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) worker: Rc<HttpWorker>,
    pub(crate) key: usize,
    pub(crate) choice: UpstreamChoice,
    /// Whether the connection goes back to the pool instead.
    pub(crate) may_be_kept: bool,
}

/// A stream that one request owns.
#[derive(Debug)]
pub(crate) struct StreamLease {
    pub(crate) worker: Rc<HttpWorker>,
    pub(crate) choice: UpstreamChoice,
    pub(crate) stream: Http2Stream,
}

impl Acquired {
    pub(crate) fn upstream(&self) -> usize {
        match self {
            Self::Http1(lease) => lease.choice.index,
            Self::Http2(lease) => lease.choice.index,
        }
    }

    /// Whether the connection has served a request before.
    pub(crate) fn is_reused(&self) -> bool {
        match self {
            Self::Http1(lease) => lease.is_reused(),
            Self::Http2(lease) => lease.stream.is_reused,
        }
    }
}

impl Lease {
    /// Whether the connection has served a request before.
    pub(crate) fn is_reused(&self) -> bool {
        self.worker.pool.borrow_mut().connection(self.key).is_reused()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.worker.upstreams.leave(self.choice);
        let mut pool = self.worker.pool.borrow_mut();
        if self.may_be_kept { pool.give_back(self.key) } else { pool.close(self.key) }
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        self.worker.upstreams.leave(self.choice);
        self.worker.pool.borrow_mut().end_stream(self.stream.key);
    }
}
