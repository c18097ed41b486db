//! One thread's counters and histograms: what each request adds to them.
//!
//! | end of a request | counter | response | service | lag |
//! |---|---|---|---|---|
//! | answered whole, below 400 or as expected | ok | intended → done | sent → done | intended → sent |
//! | failed once its deadline was over | failed | at its elapsed time | at its elapsed time, if sent | intended → sent, or at its elapsed time |
//! | sent, not answered when the load ended | unfinished | at its elapsed time | at its elapsed time | intended → sent |
//! | due, not sent when the load ended | never sent | at its elapsed time | – | at its elapsed time |
//! | due, but its place in the schedule was taken by a retry | never sent | – | – | – |
//! | failed in any other way | failed | – | – | intended → sent, if sent |
//! | any, of the warm-up | warm-up | – | – | – |
//!
//! So a failure never counts as a fast success, and slow requests are not left out. Response and lag exist only in an
//! open loop, where there is an intended time. For every thread, and for all together:
//! scheduled = ok + failed + never sent + unfinished + warm-up, once the load has ended.
//!
//! A success also records its first byte (sent → first byte of the answer) and its total (given to a slot → done), the
//! latter also by the origin of its connection. Opening a connection records connect and handshake.

use records::delta::LoadDelta;
use records::metrics::{LoadCounter, LoadLatency};
use records::values::LoadEvent;

use crate::clock::now_ns;
use crate::control::LoadSpan;
use crate::protocol::{CompleteResponse, Failure, Request, ResponseTimes};
use crate::tls::Handshake;

/// The origin of a request's connection, which determines the request's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionOrigin {
    /// An open connection.
    Reused,
    /// A new connection without TLS.
    Plain,
    /// A new connection with a full handshake.
    Full,
    /// A new connection that resumed a session.
    Resumed,
    /// A new connection that carried the request as early data.
    Early,
}

impl ConnectionOrigin {
    fn total(self) -> LoadLatency {
        match self {
            Self::Reused => LoadLatency::TotalKept,
            Self::Plain => LoadLatency::TotalPlain,
            Self::Full => LoadLatency::TotalFull,
            Self::Resumed => LoadLatency::TotalResumed,
            Self::Early => LoadLatency::TotalEarly,
        }
    }
}

/// The counter for a class of failures.
fn class(event: LoadEvent) -> LoadCounter {
    use LoadEvent as E;
    match event {
        E::ConnectRefused | E::ConnectTimeout | E::ConnectFailed => LoadCounter::FailedConnect,
        E::AlertReceived(_) | E::Certificate | E::Tls | E::Negotiated(..) => LoadCounter::FailedTls,
        E::HandshakeTimeout | E::AnswerTimeout | E::BodyTimeout => LoadCounter::FailedTimeout,
        E::HandshakeCut | E::Reset | E::Retried => LoadCounter::FailedReset,
        E::Short => LoadCounter::FailedShort,
        E::Protocol => LoadCounter::FailedProtocol,
        E::Body => LoadCounter::FailedBody,
        E::Status(_) => LoadCounter::FailedStatus,
    }
}

/// One thread's counts since the last hand-over.
#[derive(Debug, Default)]
pub(crate) struct WorkerStats {
    pub(crate) delta: LoadDelta,
    pub(crate) span: LoadSpan,
    /// Whether events of handshakes leave out the application protocol.
    pub(crate) omits_alpn: bool,
}

impl WorkerStats {
    pub(crate) fn count(&mut self, counter: LoadCounter) {
        self.add(counter, 1);
    }

    pub(crate) fn add(&mut self, counter: LoadCounter, n: u64) {
        self.delta.counters[counter] += n;
    }

    pub(crate) fn count_event(&mut self, event: LoadEvent, example: impl FnOnce() -> String) {
        self.delta.events.count(event, example);
    }

    /// A handshake is complete on a connection established at `established_ns`.
    pub(crate) fn on_handshake(
        &mut self,
        handshake: &Handshake,
        established_ns: u64,
        warmup: bool,
    ) -> ConnectionOrigin {
        let (counter, class, over) = match handshake {
            Handshake { early: true, .. } => {
                self.count(LoadCounter::EarlyAccepted);
                (LoadCounter::HandshakesResumed, LoadLatency::HandshakeEarly, ConnectionOrigin::Early)
            }
            Handshake { resumed: true, .. } => {
                (LoadCounter::HandshakesResumed, LoadLatency::HandshakeResumed, ConnectionOrigin::Resumed)
            }
            _ => (LoadCounter::HandshakesFull, LoadLatency::HandshakeFull, ConnectionOrigin::Full),
        };
        self.count(counter);
        if !warmup {
            self.time(class, Some(established_ns), now_ns());
            let omits_alpn = self.omits_alpn;
            self.count_event(handshake.event(), || handshake.describe(omits_alpn));
        }
        over
    }

    /// The first byte of a request is being sent.
    pub(crate) fn sent(&mut self, request: &mut Request, now_ns: u64) {
        if request.sent_ns.is_some() {
            return;
        }
        request.sent_ns = Some(now_ns);
        if request.warmup {
            return;
        }
        self.span.sent_ns = now_ns;
        self.count(LoadCounter::Sent);
        self.time(LoadLatency::Lag, request.intended_ns, now_ns);
    }

    /// An answer is whole; true if it is a success. `expected_status` is one even from 400 up; `what` names the request.
    pub(crate) fn answered(
        &mut self,
        request: &Request,
        origin: ConnectionOrigin,
        answer: CompleteResponse,
        arrived: ResponseTimes,
        expected_status: Option<u16>,
        what: impl FnOnce() -> String,
    ) -> bool {
        let bad_status = answer.status.filter(|status| *status >= 400 && Some(*status) != expected_status);
        let is_good = bad_status.is_none() && answer.body_is_right;
        if request.warmup {
            self.count(LoadCounter::Warmup);
            return is_good;
        }
        self.add(LoadCounter::HeadOut, answer.head_bytes);
        self.add(LoadCounter::HeadPlain, answer.head_plain_bytes);
        self.add(LoadCounter::BodyOut, answer.body_bytes);
        if let Some(status) = answer.status {
            self.count(match status {
                ..300 => LoadCounter::Status2xx,
                300..400 => LoadCounter::Status3xx,
                400..500 => LoadCounter::Status4xx,
                500.. => LoadCounter::Status5xx,
            });
        }
        let now_ns = arrived.done_ns;
        self.span.done_ns = now_ns;
        if !is_good {
            let event = bad_status.map_or(LoadEvent::Body, LoadEvent::Status);
            self.failed(request, Failure::new(event, what()), now_ns);
            return false;
        }
        if let Some(status) = answer.status {
            self.count_event(LoadEvent::Status(status), what);
        }
        self.count(LoadCounter::Ok);
        self.time(LoadLatency::Response, request.intended_ns, now_ns);
        self.time(LoadLatency::Service, request.sent_ns, now_ns);
        self.time(LoadLatency::Total, Some(request.begun_ns), now_ns);
        self.time(origin.total(), Some(request.begun_ns), now_ns);
        self.time(LoadLatency::FirstByte, request.sent_ns, arrived.first_ns);
        true
    }

    /// A request has failed. If it timed out, it enters the latencies too.
    pub(crate) fn failed(&mut self, request: &Request, failure: Failure, now_ns: u64) {
        if request.warmup {
            return self.count(LoadCounter::Warmup);
        }
        self.record_end(request, now_ns);
        self.count(LoadCounter::Failed);
        self.count(class(failure.event));
        self.count_event(failure.event, || failure.example);
        if now_ns >= request.deadline_ns {
            self.elapsed(request, now_ns);
        }
    }

    /// The load ends before a slot's request is answered.
    pub(crate) fn ended(&mut self, request: &Request, now_ns: u64) {
        if request.warmup {
            return self.count(LoadCounter::Warmup);
        }
        self.record_end(request, now_ns);
        self.count(match request.sent_ns {
            Some(_) => LoadCounter::Unfinished,
            None => LoadCounter::NeverSent,
        });
        self.elapsed(request, now_ns);
    }

    /// The load ends before a slot takes the request.
    pub(crate) fn never_sent(&mut self, intended_ns: Option<u64>, warmup: bool, now_ns: u64) {
        if warmup {
            return self.count(LoadCounter::Warmup);
        }
        self.count(LoadCounter::NeverSent);
        self.time(LoadLatency::Response, intended_ns, now_ns);
        self.time(LoadLatency::Lag, intended_ns, now_ns);
    }

    /// A retry is sent in place of the request, which never waits.
    pub(crate) fn displaced(&mut self, warmup: bool) {
        if warmup {
            return self.count(LoadCounter::Warmup);
        }
        self.count(LoadCounter::NeverSent);
        self.count(LoadCounter::Throttled);
    }

    /// Extends the measured time to the end of a request without an answer.
    fn record_end(&mut self, request: &Request, now_ns: u64) {
        if request.intended_ns.is_none() {
            self.span.done_ns = now_ns;
        }
    }

    /// Records the time that an unanswered request has taken.
    fn elapsed(&mut self, request: &Request, now_ns: u64) {
        self.time(LoadLatency::Response, request.intended_ns, now_ns);
        if request.sent_ns.is_some() {
            self.time(LoadLatency::Service, request.sent_ns, now_ns);
        } else {
            self.time(LoadLatency::Lag, request.intended_ns, now_ns);
        }
    }

    pub(crate) fn time(&mut self, class: LoadLatency, since_ns: Option<u64>, now_ns: u64) {
        if let Some(since_ns) = since_ns {
            self.delta.latencies[class].record_ns(now_ns.saturating_sub(since_ns));
        }
    }
}
