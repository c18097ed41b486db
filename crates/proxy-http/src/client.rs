//! State that the requests of a client's connection share with the handler that owns the connection.

use records::kinds::HttpVersion;
use std::cell::{Cell, OnceCell, RefCell};
use std::mem;
use std::rc::Rc;
use std::task::Waker;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use proxy_core::handler::ClientSession;
use records::delta::FinishedRequest;
use records::ids::{ClientId, ConnId};
use records::metrics::{HttpCounter, RequestFailure};

use crate::config::header_rules::TlsVariables;
use crate::guard::http1_tap::Http1Requests;
use crate::request::RequestState;
use crate::request::held_bytes::HeldBytes;
use crate::runtime::tasks::Tasks;
use crate::upstream::http1::head::FieldBytes;
use crate::worker::HttpWorker;

/// A client's connection: the state that its requests share.
#[derive(Debug)]
pub(crate) struct ClientConn {
    pub(crate) worker: Rc<HttpWorker>,
    pub(crate) conn: ConnId,
    pub(crate) id: ClientId,
    pub(crate) version: HttpVersion,
    /// Whether its `X-Forwarded-*` fields are believed.
    pub(crate) is_trusted: bool,
    /// Its address, for upstreams.
    pub(crate) address: Box<str>,
    /// Header fields for upstreams, encoded: its TLS parameters, if they are to be sent.
    pub(crate) own_fields: Box<[u8]>,
    /// For rules, and for requests that name no host.
    pub(crate) tls: TlsVariables,
    /// Whether it may ask for no other host than its server name, since certificates are for names.
    pub(crate) is_bound_to_name: bool,
    pub(crate) http1: Option<Rc<Http1Requests>>,
    /// The tasks of a connection of HTTP/2, among them its tunnels.
    pub(crate) tasks: OnceCell<Tasks>,
    activity: Activity,
    /// Requests whose responses were framed, and may not be flushed.
    framed: RefCell<Vec<Rc<RequestState>>>,
    /// The memory that it holds, over all streams.
    pub(crate) held: Rc<HeldBytes>,
    /// What its session is to count.
    events: RefCell<Vec<RequestEvent>>,
    asked: RefCell<Asked>,
}

/// A moment of a request that the session counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequestEvent {
    BegunAt(Instant),
    /// The upstream at this index has answered; how long it took.
    Answered(usize, Duration),
}

#[derive(Debug)]
struct Activity {
    /// Requests in flight.
    requests: Cell<usize>,
    /// Requests so far.
    begun: Cell<usize>,
    /// Since when none is under way.
    idle_since: Cell<Instant>,
    /// When the first byte of the next head was read.
    head_began_at: Cell<Option<Instant>>,
    /// Whether the connection ends with the next answer.
    is_ending: Cell<bool>,
    /// Whether it was to rest since the client has last sent something.
    is_resting: Cell<bool>,
}

/// What the task of hyper's connection is asked to do.
#[derive(Debug, Default)]
struct Asked {
    shuts_down: bool,
    rests: bool,
    /// Wakes the task.
    waker: Option<Waker>,
}

impl ClientConn {
    pub(crate) fn new(worker: &Rc<HttpWorker>, session: &ClientSession, now: Instant) -> Rc<Self> {
        let client = session.client();
        let ip = match client {
            ClientId::Addr(ip) => Some(ip),
            ClientId::Other => None,
        };
        let version = if session.alpn() == b"h2" { HttpVersion::Http2 } else { HttpVersion::Http1 };
        worker.count(|delta| {
            delta.counters[HttpCounter::Connections2] += u64::from(version == HttpVersion::Http2);
        });
        let shared = &worker.shared;
        Rc::new(Self {
            worker: Rc::clone(worker),
            conn: session.id(),
            id: client,
            version,
            is_trusted: ip.is_some_and(|ip| shared.trusted_forwarders.contains(ip)),
            address: ip.map_or_else(|| "unknown".into(), |ip| ip.to_string().into()),
            own_fields: own_fields(worker, session),
            tls: TlsVariables {
                version: session.tls_version(),
                server_name: session.tls_server_name().into(),
            },
            is_bound_to_name: session.is_bound_to_name(),
            http1: (version == HttpVersion::Http1).then(Rc::default),
            tasks: OnceCell::new(),
            activity: Activity {
                requests: Cell::new(0),
                begun: Cell::new(0),
                idle_since: Cell::new(now),
                head_began_at: Cell::new(None),
                is_ending: Cell::new(false),
                is_resting: Cell::new(false),
            },
            framed: RefCell::default(),
            held: Rc::new(HeldBytes::new(&worker.is_short_of_memory)),
            events: RefCell::default(),
            asked: RefCell::default(),
        })
    }

    /// Counts a header of HTTP/2.
    pub(crate) fn count_header2(&self, counter: HttpCounter, bytes: impl FnOnce() -> u64) {
        if self.version == HttpVersion::Http2 {
            self.worker.count(|delta| delta.counters[counter] += bytes());
        }
    }

    pub(crate) fn note_received(&self, now: Instant) {
        self.begin_head(now);
        self.activity.is_resting.set(false);
    }

    /// Notes that a head has begun, if it was not known.
    pub(crate) fn begin_head(&self, now: Instant) {
        let head_began_at = &self.activity.head_began_at;
        head_began_at.set(head_began_at.get().or(Some(now)));
    }

    /// Notes that the content of a request is whole: what comes next begins another head.
    pub(crate) fn end_content(&self) {
        self.activity.head_began_at.set(None);
    }

    /// Counts a request whose head has arrived; returns when its first byte arrived.
    pub(crate) fn begin_request(&self, now: Instant) -> Instant {
        self.worker.count_begun();
        let Activity { requests, begun, head_began_at, is_ending, .. } = &self.activity;
        // A pipelined HTTP/1.1 request begins when the request before it ends.
        let is_first = requests.replace(requests.get() + 1) == 0;
        begun.set(begun.get() + 1);
        if self.worker.limits().requests_per_connection.is_some_and(|max| begun.get() >= max) {
            is_ending.set(true);
            if self.version == HttpVersion::Http2 {
                self.shut_down();
            }
        }
        let began_at = head_began_at.take().filter(|_| is_first && self.version == HttpVersion::Http1);
        let began_at = began_at.map_or(now, |at| at.max(self.idle_since()));
        self.note(RequestEvent::BegunAt(began_at));
        began_at
    }

    /// Notes that the response of a request was framed, or dropped.
    pub(crate) fn end_request(&self, request: Rc<RequestState>) {
        let mut framed = self.framed.borrow_mut();
        if framed.capacity() == 0 {
            *framed = self.worker.spare_framed.take();
        }
        framed.push(request);
    }

    /// Counts the requests that were framed, and returns how many failed for another reason than the client's leaving. `cut`:
    /// why the kernel has not taken everything, if it has not.
    pub(crate) fn count_framed(&self, cut: Option<RequestFailure>) -> u64 {
        let mut framed = mem::take(&mut *self.framed.borrow_mut());
        if framed.is_empty() {
            return 0;
        }
        let now = Instant::now();
        let Activity { requests, idle_since, .. } = &self.activity;
        requests.set(requests.get() - framed.len());
        idle_since.set(now);
        let mut failed = 0;
        for request in framed.drain(..) {
            let failure = request.count(cut, now);
            failed += u64::from(failure.is_some_and(|failure| failure != RequestFailure::ClientGone));
        }
        self.worker.spare_framed.replace(framed);
        failed
    }

    /// Counts a request that hyper has refused itself.
    pub(crate) fn count_refused(&self, failure: RequestFailure, status: Option<u16>, now: Instant) {
        let began_at = self.activity.head_began_at.take().unwrap_or(now);
        self.worker.count_refused(&FinishedRequest {
            route: None,
            conn: self.conn,
            client: self.id,
            version: self.version,
            method: "",
            path: "",
            upstream: "",
            status,
            grpc_status: None,
            failure: Some(failure),
            queue: None,
            upstream_time: None,
            first_byte: None,
            duration: Some(now.saturating_duration_since(began_at)),
            body_in: Some(0),
            body_out: Some(0),
            is_reused: false,
            is_retried: false,
        });
    }

    /// Keeps what the session is to count.
    pub(crate) fn note(&self, event: RequestEvent) {
        let mut events = self.events.borrow_mut();
        if events.capacity() == 0 {
            *events = self.worker.spare_events.take();
        }
        events.push(event);
    }

    /// Takes what was kept.
    pub(crate) fn take_events(&self, mut each: impl FnMut(RequestEvent)) {
        let mut events = mem::take(&mut *self.events.borrow_mut());
        if !events.is_empty() {
            events.drain(..).for_each(&mut each);
            self.worker.spare_events.replace(events);
        }
    }

    /// Whether no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.activity.requests.get() == 0
    }

    /// Whether a request has ever begun.
    pub(crate) fn has_asked(&self) -> bool {
        self.activity.begun.get() > 0
    }

    /// Since when no request is under way.
    pub(crate) fn idle_since(&self) -> Instant {
        self.activity.idle_since.get()
    }

    /// When the first byte of a head was read that is not complete; of HTTP/1.1 only.
    pub(crate) fn head_began_at(&self) -> Option<Instant> {
        self.activity
            .head_began_at
            .get()
            .filter(|_| self.version == HttpVersion::Http1)
            .map(|at| at.max(self.idle_since()))
    }

    /// Whether the next response announces the end of the connection.
    pub(crate) fn is_ending(&self) -> bool {
        self.activity.is_ending.get()
    }

    /// Ends the connection with the next answer.
    pub(crate) fn set_ending(&self) {
        self.activity.is_ending.set(true);
    }

    /// Asks hyper to end the connection once all requests are answered.
    pub(crate) fn shut_down(&self) {
        self.ask(|asked| asked.shuts_down = true);
    }

    /// Lets the idle connection rest until the client sends something, if it can do without the memory that hyper holds for it.
    pub(crate) fn rest(&self, can_be_without: bool) {
        self.activity.is_resting.set(true);
        self.ask(|asked| asked.rests = can_be_without);
    }

    /// Whether hyper may hold memory for the connection while it is idle; of HTTP/2 it has more than memory.
    pub(crate) fn may_rest(&self) -> bool {
        self.version == HttpVersion::Http1 && !self.activity.is_resting.get()
    }

    fn ask(&self, ask: impl FnOnce(&mut Asked)) {
        let mut asked = self.asked.borrow_mut();
        ask(&mut asked);
        if let Some(waker) = &asked.waker {
            waker.wake_by_ref();
        }
    }

    /// Takes the request to end the connection, if there is one. `waker` is woken for each later request.
    pub(crate) fn take_shutdown(&self, waker: &Waker) -> bool {
        let mut asked = self.asked.borrow_mut();
        if !asked.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            asked.waker = Some(waker.clone());
        }
        mem::take(&mut asked.shuts_down)
    }

    /// Takes the request for hyper's memory, if there is one.
    pub(crate) fn take_rest(&self) -> bool {
        mem::take(&mut self.asked.borrow_mut().rests)
    }
}

fn own_fields(worker: &HttpWorker, session: &ClientSession) -> Box<[u8]> {
    let mut fields = FieldBytes::default();
    if worker.shared.sends_tls_fields {
        write_tls_fields(&mut fields, session);
    }
    fields.into_bytes().into()
}

/// Largest certificate that upstreams get: many of them refuse requests whose header has more than 8 KiB.
const CERTIFICATE_BYTES_MAX: usize = 4 << 10;

/// A certificate as a byte sequence of a structured field, as RFC 9440 encodes it; empty if it is too large.
fn certificate_field(der: &[u8]) -> String {
    if der.len() > CERTIFICATE_BYTES_MAX { String::new() } else { format!(":{}:", STANDARD.encode(der)) }
}

fn write_tls_fields(fields: &mut FieldBytes, session: &ClientSession) {
    let name = session.client_common_name().unwrap_or_default();
    let certificate = session.client_certificate().map(certificate_field).unwrap_or_default();
    let all = [
        ("x-tls-version", session.tls_version()),
        ("x-tls-cipher", &session.tls_cipher()),
        ("x-tls-server-name", session.tls_server_name()),
        ("x-tls-client-name", &name),
        ("x-tls-client-cert", &certificate),
    ];
    for (name, value) in all {
        // A certificate may name what no field can carry.
        if !value.is_empty() && HeaderValue::from_bytes(value.as_bytes()).is_ok() {
            fields.write(name, value.as_bytes());
        }
    }
}
