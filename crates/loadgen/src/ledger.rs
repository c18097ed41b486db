//! What becomes of each request, and what that enters into counters and histograms.
//!
//! | end of a request | counter | response | service | lag |
//! |---|---|---|---|---|
//! | answered whole, below 400 | ok | intended → done | sent → done | intended → sent |
//! | failed once its deadline was over | failed | at its elapsed time | at its elapsed time, if sent | intended → sent, or at its elapsed time |
//! | sent, not answered when the load ended | unfinished | at its elapsed time | at its elapsed time | intended → sent |
//! | due, not sent when the load ended | never sent | at its elapsed time | – | at its elapsed time |
//! | failed in any other way | failed | – | – | intended → sent, if sent |
//!
//! So a failure is never a fast success, and what took too long is not left out. Response and lag exist only where
//! there is an intended time, in an open loop. For every thread, and for all of them together:
//! scheduled = ok + failed + never sent + unfinished, once the load has ended.

use telemetry::{LoadCounter, LoadDelta, LoadLatency};

/// A request that a connection has taken on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Which template it is made from.
    pub(crate) template: usize,
    /// When the schedule wanted it sent; `None` in a closed loop.
    pub(crate) intended_ns: Option<u64>,
    /// When its first byte was handed to a connection; on a retry, the first time.
    pub(crate) sent_ns: Option<u64>,
    /// When it has failed if it has no whole answer.
    pub(crate) deadline_ns: u64,
    /// It was sent again already.
    pub(crate) retried: bool,
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// No connection could be made.
    Connect,
    /// The handshake failed, or a record was bad.
    Tls,
    /// There was no whole answer at the deadline.
    Timeout,
    /// The connection broke or closed before the answer was whole.
    Reset,
    /// The answer was not HTTP.
    Protocol,
    /// The answer had a status of 400 or above.
    Status,
}

impl Failure {
    fn counter(self) -> LoadCounter {
        match self {
            Self::Connect => LoadCounter::FailedConnect,
            Self::Tls => LoadCounter::FailedTls,
            Self::Timeout => LoadCounter::FailedTimeout,
            Self::Reset => LoadCounter::FailedReset,
            Self::Protocol => LoadCounter::FailedProtocol,
            Self::Status => LoadCounter::FailedStatus,
        }
    }
}

/// One thread's counts since the last hand-over.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) delta: LoadDelta,
}

impl Ledger {
    pub(crate) fn count(&mut self, counter: LoadCounter) {
        self.add(counter, 1);
    }

    pub(crate) fn add(&mut self, counter: LoadCounter, n: u64) {
        self.delta.counters[counter] += n;
    }

    /// The first byte of a request is being handed to a connection.
    pub(crate) fn sent(&mut self, request: &mut Request, now_ns: u64) {
        if request.sent_ns.is_none() {
            request.sent_ns = Some(now_ns);
            self.count(LoadCounter::Sent);
            self.time(LoadLatency::Lag, request.intended_ns, now_ns);
        }
    }

    /// An answer is whole; true if it is a success.
    pub(crate) fn answered(&mut self, request: &Request, status: u16, now_ns: u64) -> bool {
        self.count(match status {
            ..300 => LoadCounter::Status2xx,
            300..400 => LoadCounter::Status3xx,
            400..500 => LoadCounter::Status4xx,
            500.. => LoadCounter::Status5xx,
        });
        if status >= 400 {
            self.failed(request, Failure::Status, now_ns);
            return false;
        }
        self.count(LoadCounter::Ok);
        self.time(LoadLatency::Response, request.intended_ns, now_ns);
        self.time(LoadLatency::Service, request.sent_ns, now_ns);
        true
    }

    /// A request has failed; what took longer than it may is not left out of the latencies.
    pub(crate) fn failed(&mut self, request: &Request, failure: Failure, now_ns: u64) {
        self.count(LoadCounter::Failed);
        self.count(failure.counter());
        if now_ns >= request.deadline_ns {
            self.elapsed(request, now_ns);
        }
    }

    /// The load ends while a connection still has the request.
    pub(crate) fn ended(&mut self, request: &Request, now_ns: u64) {
        self.count(match request.sent_ns {
            Some(_) => LoadCounter::Unfinished,
            None => LoadCounter::NeverSent,
        });
        self.elapsed(request, now_ns);
    }

    /// The load ends before any connection has taken on the request.
    pub(crate) fn never_sent(&mut self, intended_ns: Option<u64>, now_ns: u64) {
        self.count(LoadCounter::NeverSent);
        self.time(LoadLatency::Response, intended_ns, now_ns);
        self.time(LoadLatency::Lag, intended_ns, now_ns);
    }

    /// Enters a request that is over without an answer with the time it has taken so far.
    fn elapsed(&mut self, request: &Request, now_ns: u64) {
        self.time(LoadLatency::Response, request.intended_ns, now_ns);
        if request.sent_ns.is_some() {
            self.time(LoadLatency::Service, request.sent_ns, now_ns);
        } else {
            self.time(LoadLatency::Lag, request.intended_ns, now_ns);
        }
    }

    fn time(&mut self, class: LoadLatency, since_ns: Option<u64>, now_ns: u64) {
        if let Some(since_ns) = since_ns {
            self.delta.latencies[class].record_ns(now_ns.saturating_sub(since_ns));
        }
    }
}
