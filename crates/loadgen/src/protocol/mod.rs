//! A protocol as the worker sees it: the state of one connection, without its socket.

mod encoded_request;
mod encoded_requests;
pub(crate) mod http1;
pub(crate) mod http2;
mod request;
mod response;

use std::fmt;

pub use encoded_request::RequestError;
pub(crate) use encoded_request::{BODY_BYTES_MAX, EncodedRequest, RequestSource, check_template, sequence};
pub(crate) use encoded_requests::EncodedRequests;
use records::values::LoadEvent;
pub(crate) use request::{Failure, Request, ResponseTimes};
pub(crate) use response::CompleteResponse;

use crate::tls::Alpn;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, a request at a time on each connection.
    #[default]
    Http1,
    /// HTTP/2, without TLS by prior knowledge.
    Http2 {
        /// Requests at a time on each connection.
        streams: u32,
    },
}

impl Protocol {
    /// Requests at a time on each connection.
    pub fn streams(self) -> u32 {
        match self {
            Self::Http1 => 1,
            Self::Http2 { streams } => streams,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http1 => f.write_str("http/1.1"),
            Self::Http2 { streams } => write!(f, "h2, {streams} streams"),
        }
    }
}

/// The protocol of a connection: which requests it carries, the bytes that it sends for them, and how it parses
/// answers.
pub(crate) trait ProtocolSession {
    /// True if a connection carries several requests at a time. The worker then batches their bytes, and a slot opens
    /// its next connection while the old one still closes.
    const IS_MULTIPLEXED: bool;

    fn new() -> Self;

    /// True if the protocol can be spoken over a TLS connection that agreed to `alpn`.
    fn can_follow(alpn: Option<Alpn>) -> bool;

    /// Requests begun on this connection.
    fn carried(&self) -> u32;

    /// Whole answers received on it.
    fn answers(&self) -> u32;

    /// The worker's next action on the connection.
    fn fate(&self) -> ConnectionReuse;

    /// True if a request may begin now.
    fn has_room(&self) -> bool;

    /// Accepts no more requests. Only multiplexed connections need this call; on others the last request says so.
    fn retire(&mut self) {}

    /// Begins a request; there must be [room](Self::has_room) for it. The connection closes after the last one.
    fn begin(&mut self, request: Request, prepared: &EncodedRequest, is_last: bool);

    /// The server has rejected the early data that held the request: it has to be sent again.
    fn early_data_rejected(&mut self) {}

    fn output<'a>(&'a mut self, requests: &'a EncodedRequests) -> &'a [u8];

    /// The first `bytes` of the output were sent.
    fn note_sent(&mut self, bytes: usize);

    /// Processes bytes from the server, and adds finished requests to `ended`.
    fn receive(&mut self, plaintext: &[u8], requests: &EncodedRequests, ended: &mut EndedRequests);

    /// Ends the requests whose deadline has passed.
    fn expire(&mut self, now_ns: u64, ended: &mut EndedRequests);

    /// Ends all requests, because the connection has ended.
    fn end(&mut self, end: ConnectionEnd, ended: &mut EndedRequests);

    /// Takes all requests away, without a result.
    fn give_up(&mut self) -> impl Iterator<Item = Request>;

    /// The templates of the requests in flight.
    fn templates(&self) -> impl Iterator<Item = usize>;

    /// Announces the end to the server, if the protocol has a message for it.
    fn close(&mut self) {}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// In order: end of file, and with TLS a `close_notify` before it.
    Clean,
    /// Reset, or with TLS cut without a `close_notify`.
    Cut,
    /// By an error in TLS.
    Tls,
}

/// Whether a connection can be used again, and who closes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ConnectionReuse {
    /// It can carry more requests.
    #[default]
    Open,
    /// It finishes its requests, and accepts no more.
    Retired,
    /// It is done, and the server closes first.
    ServerCloses,
    /// It is done, and we close first.
    ClientCloses,
    /// The server broke the protocol: report it, then drop the connection.
    Broken,
    /// It cannot be used any more: drop it.
    Lost,
}

#[derive(Debug)]
pub(crate) enum RequestOutcome {
    Answered(CompleteResponse, ResponseTimes),
    Failed(Failure),
    /// The server has not processed it, as far as is known (RFC 9112, section 9.3.1; RFC 9113, section 8.7).
    Unprocessed(Failure),
}

pub(crate) type EndedRequests = Vec<(Request, RequestOutcome)>;

/// The outcome of a request whose connection ended after `answers` responses.
pub(crate) fn cut_off(end: ConnectionEnd, answers: u32, has_begun: bool) -> RequestOutcome {
    let how = if end == ConnectionEnd::Clean { "closed" } else { "cut" };
    let example = format!("{how} after {answers} answers");
    if has_begun {
        RequestOutcome::Failed(Failure::new(LoadEvent::Short, example))
    } else {
        RequestOutcome::Unprocessed(Failure::new(LoadEvent::Reset, example))
    }
}

/// The failure of a request whose deadline has passed.
pub(crate) fn timed_out(has_begun: bool) -> RequestOutcome {
    let event = if has_begun { LoadEvent::BodyTimeout } else { LoadEvent::AnswerTimeout };
    RequestOutcome::Failed(Failure::new(event, ""))
}
