//! A request's life: every request is counted exactly once, at its end, whatever ends it.
//!
//! The future that answers it, the response's body and the body's data on their way to the client each hold a
//! [`RequestHandle`]. When the last of them is dropped, the response is framed, or nobody wants it any more. The
//! connection counts the request once the kernel has taken everything that was framed.
//!
//! | time | from | to |
//! |---|---|---|
//! | queue | the pool's refusal | a connection of the pool, which may not be connected yet, or the end of the wait without one |
//! | upstream | HTTP/1.1: the upstream's socket took the first byte of the head; HTTP/2: the head was queued on its connection | head of the response read |
//! | first byte | head handed over by hyper | head of the response handed to hyper |
//! | request | HTTP/1.1: the worker's turn that read its first byte, or the end of the request before it if that came later; HTTP/2: its head handed over by hyper | first complete flush after the response was framed |
//!
//! Where a time begins with a turn of the worker, it is that turn's look at the clock.

pub(crate) mod check;
pub(crate) mod held_bytes;
pub(crate) mod special_fields;
pub(crate) mod target_text;

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hyper::{Method, Request, Uri, Version};
use records::delta::FinishedRequest;
use records::ids::ClientId;
use records::metrics::RequestFailure;

use crate::client::{ClientConn, RequestEvent};
use crate::request::held_bytes::REQUEST_BYTES;
use crate::request::target_text::without_query;
use crate::route::timeouts::RouteTimeouts;

#[derive(Debug)]
pub(crate) struct RequestState {
    client: Rc<ClientConn>,
    method: Method,
    version: Version,
    uri: Uri,
    /// The path with its query as it was received, if hyper has got another.
    received_path: OnceCell<Box<str>>,
    began_at: Instant,
    head_at: Instant,
    figures: RequestFigures,
}

/// What is noted of a request on its way.
#[derive(Debug, Default)]
struct RequestFigures {
    /// The client, if a trusted peer forwarded the request.
    forwarded_for: Cell<Option<ClientId>>,
    route: Cell<Option<usize>>,
    upstream: Cell<Option<usize>>,
    status: Cell<Option<u16>>,
    /// The status of a call of gRPC.
    grpc_status: Cell<Option<u16>>,
    failure: Cell<Option<RequestFailure>>,
    queue: Cell<Option<Duration>>,
    upstream_time: Cell<Option<Duration>>,
    /// When the head of the upstream's response was read.
    answered_at: Cell<Option<Instant>>,
    first_byte: Cell<Option<Duration>>,
    /// What it holds of its client's bound.
    held: Cell<usize>,
    body_in: Cell<u64>,
    body_out: Cell<u64>,
    /// Whether its response is the proxy's own, and not an upstream's.
    is_own_response: Cell<bool>,
    is_reused: Cell<bool>,
    is_retried: Cell<bool>,
    /// Whether its response is whole, or cut for a known reason.
    is_complete: Cell<bool>,
}

/// A part of a request that is under way.
#[derive(Debug)]
pub(crate) struct RequestHandle(Rc<RequestState>);

impl RequestHandle {
    /// Begins with the head of a request of this client.
    pub(crate) fn begin<B>(client: &Rc<ClientConn>, request: &Request<B>) -> Self {
        let head_at = client.worker.now();
        let handle = Self(Rc::new(RequestState {
            began_at: client.begin_request(head_at),
            client: Rc::clone(client),
            method: request.method().clone(),
            version: request.version(),
            uri: request.uri().clone(),
            received_path: OnceCell::default(),
            head_at,
            figures: RequestFigures::default(),
        }));
        handle.set_head_bytes(0);
        handle
    }

    /// Stores the client for which a trusted peer has forwarded the request.
    pub(crate) fn set_client(&self, client: ClientId) {
        self.0.figures.forwarded_for.set(Some(client));
    }

    /// The client that makes it, or for which a trusted peer has sent it.
    pub(crate) fn client_id(&self) -> ClientId {
        self.0.client_id()
    }

    /// Notes its path with its query as it was received.
    pub(crate) fn set_received_path(&self, path: Box<str>) {
        self.0.received_path.get_or_init(|| path);
    }

    /// The path with its query as it was received, if that is not the path of its URI.
    pub(crate) fn received_path(&self) -> Option<&str> {
        self.0.received_path.get().map(|path| &**path)
    }

    /// Notes the memory of its head for the upstream; 0 once it is not needed any more.
    pub(crate) fn set_head_bytes(&self, bytes: usize) {
        let path = self.0.uri.path_and_query().map_or(0, |path| path.as_str().len());
        self.0.set_held(REQUEST_BYTES + path + bytes);
    }

    pub(crate) fn set_route(&self, route: usize) {
        self.0.figures.route.set(Some(route));
    }

    pub(crate) fn timeouts(&self) -> RouteTimeouts {
        let RequestState { figures, client, .. } = &*self.0;
        let destinations = &client.worker.shared.routing.destinations;
        figures.route.get().map_or_else(RouteTimeouts::default, |route| destinations[route].timeouts)
    }

    /// Notes that it has waited for a connection to an upstream.
    pub(crate) fn add_queued(&self, waited: Duration) {
        self.0.figures.queue.set(Some(self.0.figures.queue.get().unwrap_or_default() + waited));
    }

    /// Notes the upstream that it is sent to, and whether the connection was a kept one.
    pub(crate) fn set_upstream(&self, upstream: usize, is_reused: bool) {
        self.0.figures.upstream.set(Some(upstream));
        self.0.figures.is_reused.set(is_reused);
    }

    /// Notes that it is sent a second time.
    pub(crate) fn set_retried(&self) {
        self.0.figures.is_retried.set(true);
    }

    /// Counts bytes of its body.
    pub(crate) fn received(&self, bytes: u64) {
        self.0.figures.body_in.set(self.0.figures.body_in.get() + bytes);
    }

    /// Counts bytes of the response's body that were framed for the client.
    pub(crate) fn sent(&self, bytes: u64) {
        self.0.figures.body_out.set(self.0.figures.body_out.get() + bytes);
    }

    /// Notes that its response is the proxy's own.
    pub(crate) fn set_own_response(&self) {
        self.0.figures.is_own_response.set(true);
    }

    pub(crate) fn method(&self) -> &Method {
        &self.0.method
    }

    /// The version of HTTP that it is in.
    pub(crate) fn version(&self) -> Version {
        self.0.version
    }

    pub(crate) fn client(&self) -> &ClientConn {
        &self.0.client
    }

    /// Notes that the upstream, which was sent the request then, has answered now.
    pub(crate) fn set_answered(&self, sent_at: Option<Instant>, now: Instant) {
        self.0.figures.answered_at.set(Some(now));
        if let Some(sent_at) = sent_at {
            let took = now.saturating_duration_since(sent_at);
            self.0.figures.upstream_time.set(Some(took));
            if let Some(upstream) = self.0.figures.upstream.get() {
                self.0.client.note(RequestEvent::Answered(upstream, took));
            }
        }
    }

    /// Notes that the response begins: hyper gets an upstream's as soon as its head is read.
    pub(crate) fn begin_response(&self, status: u16) {
        let now = self.0.figures.answered_at.get().unwrap_or_else(Instant::now);
        self.0.figures.status.set(Some(status));
        self.0.figures.first_byte.set(Some(now.saturating_duration_since(self.0.head_at)));
    }

    /// Notes the status of a call of gRPC; `None` if it is not a number.
    pub(crate) fn set_grpc_status(&self, status: Option<u16>) {
        self.0.figures.grpc_status.set(status);
    }

    pub(crate) fn fail(&self, failure: RequestFailure) {
        self.0.figures.failure.set(Some(failure));
        self.set_complete();
    }

    /// Whether the client is known to have given it up.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.figures.failure.get() == Some(RequestFailure::ClientGone)
    }

    /// Records that its response is over.
    pub(crate) fn set_complete(&self) {
        self.0.figures.is_complete.set(true);
    }

    /// Notes that the client will not get all of the response.
    pub(crate) fn set_cut(&self) {
        self.0.figures.is_complete.set(false);
    }
}

impl Clone for RequestHandle {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl Drop for RequestHandle {
    fn drop(&mut self) {
        if Rc::strong_count(&self.0) == 1 {
            self.0.client.end_request(Rc::clone(&self.0));
        }
    }
}

impl RequestState {
    fn client_id(&self) -> ClientId {
        self.figures.forwarded_for.get().unwrap_or(self.client.id)
    }

    fn set_held(&self, bytes: usize) {
        self.client.held.release_request(self.figures.held.replace(bytes));
        self.client.held.hold_request(bytes);
    }

    /// Its path without the query.
    fn path(&self) -> &str {
        self.received_path.get().map_or_else(|| self.uri.path(), |path| without_query(path))
    }

    /// Counts it, and returns why it failed, if it has. `cut`: why the kernel has not taken everything that was framed, if
    /// it has not.
    pub(crate) fn count(&self, cut: Option<RequestFailure>, now: Instant) -> Option<RequestFailure> {
        self.set_held(0);
        let cut = cut.or_else(|| (!self.figures.is_complete.get()).then_some(RequestFailure::ClientGone));
        let failure = self.figures.failure.get().or(cut);
        let ClientConn { worker, conn, version, .. } = &*self.client;
        let finished = FinishedRequest {
            route: self.figures.route.get(),
            conn: *conn,
            client: self.client_id(),
            version: *version,
            method: self.method.as_str(),
            path: if worker.shared.records_paths { self.path() } else { "" },
            upstream: self.figures.upstream.get().map_or("", |index| worker.upstreams.name(index)),
            status: self.figures.status.get(),
            grpc_status: self.figures.grpc_status.get(),
            failure,
            queue: self.figures.queue.get(),
            upstream_time: self.figures.upstream_time.get(),
            first_byte: self.figures.first_byte.get(),
            duration: Some(now.saturating_duration_since(self.began_at)),
            body_in: Some(self.figures.body_in.get()),
            body_out: Some(self.figures.body_out.get()),
            is_reused: self.figures.is_reused.get(),
            is_retried: self.figures.is_retried.get(),
        };
        worker.count_end(&finished);
        if let Some(upstream) = self.figures.upstream.get() {
            let is_own = self.figures.is_own_response.get();
            let body_out = if is_own { 0 } else { self.figures.body_out.get() };
            worker.count_exchange(upstream, &finished, body_out);
        }
        failure
    }
}
