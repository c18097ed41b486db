//! What becomes of each request, and what that enters into counters and histograms.
//!
//! | end of a request | counter | response | service | lag |
//! |---|---|---|---|---|
//! | answered whole, below 400 | ok | intended → done | sent → done | intended → sent |
//! | failed once its deadline was over | failed | at its elapsed time | at its elapsed time, if sent | intended → sent, or at its elapsed time |
//! | sent, not answered when the load ended | unfinished | at its elapsed time | at its elapsed time | intended → sent |
//! | due, not sent when the load ended | never sent | at its elapsed time | – | at its elapsed time |
//! | failed in any other way | failed | – | – | intended → sent, if sent |
//! | any, of the warm-up | warm-up | – | – | – |
//!
//! So a failure is never a fast success, and what took too long is not left out. Response and lag exist only where
//! there is an intended time, in an open loop. For every thread, and for all of them together:
//! scheduled = ok + failed + never sent + unfinished + warm-up, once the load has ended.
//!
//! A success also enters its first byte (sent → first byte of the answer) and its total (taken on by a connection, or
//! by one that is made for it → done), the latter also by what it went over. Connect and handshake are entered by whoever makes the connection.

use std::io;

use telemetry::{HandOver, LoadCounter, LoadDelta, LoadEvent, LoadLatency, Reporter};

use crate::clock::now_ns;
use crate::control::Control;
use crate::course::{Course, Ran};
use crate::http1::Answer;
use crate::pacer::Due;
use crate::socket::Address;
use crate::tls::Handshake;

/// A request that a connection has taken on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// Which template it is made from.
    pub(crate) template: usize,
    /// When the schedule wanted it sent; `None` in a closed loop.
    pub(crate) intended_ns: Option<u64>,
    /// When a connection took it on, or began to be made for it.
    pub(crate) begun_ns: u64,
    /// When its first byte was handed to a connection; on a retry, the first time.
    pub(crate) sent_ns: Option<u64>,
    /// When it has failed if it has no whole answer.
    pub(crate) deadline_ns: u64,
    /// It was sent again already.
    pub(crate) retried: bool,
    /// It is of the warm-up.
    pub(crate) warmup: bool,
    /// What it went over.
    pub(crate) over: Over,
}

impl Request {
    /// Made from this template, and taken on now by a connection that may have so long for it.
    pub(crate) fn new(template: usize, due: Due, now_ns: u64, timeout_ns: u64, warmup: bool) -> Self {
        Self {
            template,
            intended_ns: due.intended_ns,
            begun_ns: now_ns,
            sent_ns: None,
            deadline_ns: now_ns.saturating_add(timeout_ns),
            retried: false,
            warmup,
            over: Over::default(),
        }
    }
}

/// What a request goes over, which decides what it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Over {
    /// A connection that stood already.
    #[default]
    Kept,
    /// A new connection that it waited for, without TLS.
    Plain,
    /// The same with a full handshake.
    Full,
    /// The same with a resumed one.
    Resumed,
    /// The same as early data.
    Early,
}

impl Over {
    fn total(self) -> LoadLatency {
        match self {
            Self::Kept => LoadLatency::TotalKept,
            Self::Plain => LoadLatency::TotalPlain,
            Self::Full => LoadLatency::TotalFull,
            Self::Resumed => LoadLatency::TotalResumed,
            Self::Early => LoadLatency::TotalEarly,
        }
    }
}

/// Why a request failed, with what is to be told of the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) event: LoadEvent,
    pub(crate) example: String,
}

impl Failure {
    /// No connection could be made to an address.
    pub(crate) fn connect(to: &Address, error: &io::Error) -> Self {
        let event = match error.kind() {
            io::ErrorKind::ConnectionRefused => LoadEvent::ConnectRefused,
            io::ErrorKind::TimedOut => LoadEvent::ConnectTimeout,
            _ => LoadEvent::ConnectFailed,
        };
        Self::new(event, format!("{to}: {error}"))
    }

    pub(crate) fn new(event: LoadEvent, example: impl Into<String>) -> Self {
        Self { event, example: example.into() }
    }
}

/// The counter under which failures of a kind are summed up.
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

/// The time in which something was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) ran: Ran,
    /// When the last request was sent; 0 before that.
    pub(crate) sent_ns: u64,
    /// When the last answer was whole; in a closed loop, when the last request was over in whatever way. An open loop
    /// does not wait for what fails, so failures do not lengthen it.
    pub(crate) done_ns: u64,
}

impl Span {
    /// Takes in what another thread has measured.
    pub(crate) fn widen(&mut self, other: Self) {
        self.ran.for_ns = self.ran.for_ns.max(other.ran.for_ns);
        self.ran.until_ns = self.ran.until_ns.max(other.ran.until_ns);
        self.sent_ns = self.sent_ns.max(other.sent_ns);
        self.done_ns = self.done_ns.max(other.done_ns);
    }
}

/// One thread's counts since the last hand-over.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) delta: LoadDelta,
    pub(crate) span: Span,
}

impl Ledger {
    pub(crate) fn count(&mut self, counter: LoadCounter) {
        self.add(counter, 1);
    }

    pub(crate) fn add(&mut self, counter: LoadCounter, n: u64) {
        self.delta.counters[counter] += n;
    }

    /// Hands the counts over if they are asked for; false if nobody asks any more.
    pub(crate) fn report(
        &mut self,
        reporter: &Reporter<LoadDelta>,
        control: &Control,
        course: &Course,
    ) -> bool {
        let asked = reporter.answer(&mut self.delta, |_| {});
        if asked == HandOver::Done {
            control.note_span(Span { ran: course.ran(), ..self.span });
        }
        asked != HandOver::CollectorGone
    }

    pub(crate) fn tally(&mut self, event: LoadEvent, example: impl FnOnce() -> String) {
        self.delta.tally.count(event, example);
    }

    /// A handshake is done, for a request whose connection stood at `established_ns`. Gives what the request goes over.
    pub(crate) fn shaken(&mut self, handshake: &Handshake, established_ns: u64, warmup: bool) -> Over {
        let (counter, class, over) = match handshake {
            Handshake { early: true, .. } => {
                self.count(LoadCounter::EarlyAccepted);
                (LoadCounter::HandshakesResumed, LoadLatency::HandshakeEarly, Over::Early)
            }
            Handshake { resumed: true, .. } => {
                (LoadCounter::HandshakesResumed, LoadLatency::HandshakeResumed, Over::Resumed)
            }
            _ => (LoadCounter::HandshakesFull, LoadLatency::HandshakeFull, Over::Full),
        };
        self.count(counter);
        if !warmup {
            self.time(class, Some(established_ns), now_ns());
            self.tally(handshake.event(), || handshake.describe());
        }
        over
    }

    /// The first byte of a request is being handed to a connection.
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

    /// An answer is whole; true if it is a success. `what` names the request.
    pub(crate) fn answered(
        &mut self,
        request: &Request,
        answer: Answer,
        arrived: Arrived,
        what: impl FnOnce() -> String,
    ) -> bool {
        let bad_status = answer.status.filter(|status| *status >= 400);
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
            self.tally(LoadEvent::Status(status), what);
        }
        self.count(LoadCounter::Ok);
        self.time(LoadLatency::Response, request.intended_ns, now_ns);
        self.time(LoadLatency::Service, request.sent_ns, now_ns);
        self.time(LoadLatency::Total, Some(request.begun_ns), now_ns);
        self.time(request.over.total(), Some(request.begun_ns), now_ns);
        self.time(LoadLatency::FirstByte, request.sent_ns, arrived.first_ns);
        true
    }

    /// A request has failed; what took longer than it may is not left out of the latencies.
    pub(crate) fn failed(&mut self, request: &Request, failure: Failure, now_ns: u64) {
        if request.warmup {
            return self.count(LoadCounter::Warmup);
        }
        self.note_over(request, now_ns);
        self.count(LoadCounter::Failed);
        self.count(class(failure.event));
        self.tally(failure.event, || failure.example);
        if now_ns >= request.deadline_ns {
            self.elapsed(request, now_ns);
        }
    }

    /// The load ends while a connection still has the request.
    pub(crate) fn ended(&mut self, request: &Request, now_ns: u64) {
        if request.warmup {
            return self.count(LoadCounter::Warmup);
        }
        self.note_over(request, now_ns);
        self.count(match request.sent_ns {
            Some(_) => LoadCounter::Unfinished,
            None => LoadCounter::NeverSent,
        });
        self.elapsed(request, now_ns);
    }

    /// The load ends before any connection has taken on the request.
    pub(crate) fn never_sent(&mut self, intended_ns: Option<u64>, warmup: bool, now_ns: u64) {
        if warmup {
            return self.count(LoadCounter::Warmup);
        }
        self.count(LoadCounter::NeverSent);
        self.time(LoadLatency::Response, intended_ns, now_ns);
        self.time(LoadLatency::Lag, intended_ns, now_ns);
    }

    /// A request is over without an answer.
    fn note_over(&mut self, request: &Request, now_ns: u64) {
        if request.intended_ns.is_none() {
            self.span.done_ns = now_ns;
        }
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

    pub(crate) fn time(&mut self, class: LoadLatency, since_ns: Option<u64>, now_ns: u64) {
        if let Some(since_ns) = since_ns {
            self.delta.latencies[class].record_ns(now_ns.saturating_sub(since_ns));
        }
    }
}

/// When an answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    /// Its first byte.
    pub(crate) first_ns: u64,
    /// Its last.
    pub(crate) done_ns: u64,
}
