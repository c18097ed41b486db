//! What one line of a log says, in the same terms for every terminator.

use std::borrow::Cow;
use std::time::Duration;

use records::ids::ClientId;
use records::kinds::ConnectionOutcome;
use records::metrics::RequestFailure;
use records::values::LogFigure;

/// What one line of a log says. What the line does not say is `None` or empty; nothing is estimated.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEvent<'a> {
    /// When it was logged or ended, in microseconds since 1970.
    pub time_us: Option<u64>,
    pub client: ClientId,
    /// The connection, if this line is the one that counts it.
    pub connection: Option<LoggedConnection<'a>>,
    /// The request, in HTTP mode.
    pub request: Option<LoggedRequest<'a>>,
    /// Plaintext from the client.
    pub bytes_in: u64,
    /// Plaintext to the client.
    pub bytes_out: u64,
    /// The number of the line among those of one log, if the format has a counter.
    pub sequence: Option<LineNumber<'a>>,
    /// Whether syslog carried the line.
    pub is_relayed: bool,
    /// What lines of its form cannot say, beside what none of the terminator can.
    pub lacks: &'static [AbsentFigure],
}

/// A figure that a log does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbsentFigure {
    pub figure: LogFigure,
    /// Why, or what would give it.
    pub reason: &'static str,
}

/// A connection, as one line describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedConnection<'a> {
    /// The handshake, if TLS was spoken and its handshake is complete.
    pub handshake: Option<LoggedHandshake<'a>>,
    pub failure: Option<LoggedFailure<'a>>,
    /// Whether the upstream was connected to, although `connect` is unknown.
    pub has_upstream: bool,
    /// Connecting to the upstream.
    pub connect: Option<Duration>,
    /// Accept to close.
    pub lifetime: Option<Duration>,
}

/// A complete handshake. Names are as the terminator writes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedHandshake<'a> {
    /// The version, such as `TLSv1.3`.
    pub version: Cow<'a, str>,
    pub cipher: Cow<'a, str>,
    /// The group of the key exchange; empty if the line does not say.
    pub group: Cow<'a, str>,
    /// The server name the client asked for; `None` if the format has none, empty if the client gave none.
    pub name: Option<Cow<'a, str>>,
    /// The application protocol; the same.
    pub alpn: Option<Cow<'a, str>>,
    pub is_resumed: bool,
    pub took: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LoggedFailure<'a> {
    pub outcome: ConnectionOutcome,
    /// The terminator's description of the failure.
    pub detail: Cow<'a, str>,
}

/// A request that is over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoggedRequest<'a> {
    /// The number of its connection in the log; 0 if the log does not say.
    pub connection: u64,
    pub method: Cow<'a, str>,
    /// Its path without the query; empty if the log does not say.
    pub path: Cow<'a, str>,
    /// What follows the `?` in its target, empty if nothing does; `None` if the log does not say.
    pub query: Option<Cow<'a, str>>,
    /// The protocol, such as `HTTP/2.0`.
    pub protocol: Cow<'a, str>,
    /// The upstream; empty if the log does not say.
    pub upstream: Cow<'a, str>,
    /// The status that was sent; `None` if it was over before one was.
    pub status: Option<u16>,
    pub failure: Option<RequestFailure>,
    /// To the upstream's response head.
    pub upstream_time: Option<Duration>,
    /// First byte to the end.
    pub took: Option<Duration>,
    /// Bytes of the response's body; `None` if the log does not say.
    pub body_out: Option<u64>,
}

/// The number of a line, to find lost lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineNumber<'a> {
    /// The log that counts its lines, such as a frontend.
    pub log: Cow<'a, str>,
    /// Grows by 1 with each line.
    pub number: u64,
}

impl LogEvent<'_> {
    /// An empty event of a client.
    pub(crate) fn of(client: ClientId) -> Self {
        Self {
            time_us: None,
            client,
            connection: None,
            request: None,
            bytes_in: 0,
            bytes_out: 0,
            sequence: None,
            is_relayed: false,
            lacks: &[],
        }
    }
}
