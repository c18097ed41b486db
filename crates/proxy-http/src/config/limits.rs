//! Bounds of HTTP mode.

use std::time::Duration;

use proxy_core::{DeclaredOptions, OptionKind, OptionSpec, Rate, option_names};
use records::setting::Applies;

/// Shortest and longest timeout, in seconds: a day.
const TIMEOUT_RANGE: (f64, f64) = (0.001, 86_400.0);

/// Bounds on requests, and on the connections to upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// For the head of a request, from its first byte.
    pub header_timeout: Duration,
    /// How long the body of a request may make no progress.
    pub body_timeout: Duration,
    /// From a request sent to the head of its response.
    pub response_timeout: Duration,
    /// How long a client's connection may have no request.
    pub keep_alive_timeout: Duration,
    /// How long a request may wait for an upstream connection.
    pub queue_timeout: Duration,
    /// Requests of a worker that may wait for an upstream connection; further ones are refused.
    pub queue_max: usize,
    /// How long an unused upstream connection is kept.
    pub upstream_idle_timeout: Duration,
    /// Upstream connections of the proxy, of which each worker has its share.
    pub upstream_connections_max: usize,
    /// Streams of an HTTP/2 connection at once.
    pub streams_max: usize,
    /// Requests of a connection, after which it is closed; `None`: no bound.
    pub requests_per_connection: Option<usize>,
    /// Requests of one client, IPv6 by /64; `None`: no bound. Further ones are refused.
    pub request_rate: Option<Rate>,
    pub header_bytes_max: usize,
    pub header_fields_max: usize,
    /// The largest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// `RST_STREAM` frames of an HTTP/2 connection in 30 seconds, beyond a quarter of its streams: from the client, and to
    /// it for its errors. More end it.
    pub resets_max: usize,
    /// PING, SETTINGS, PRIORITY and `WINDOW_UPDATE` frames of an HTTP/2 connection in 30 seconds, beyond what its streams
    /// and their content explain. More end it.
    pub control_frames_max: usize,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            response_timeout: Duration::from_secs(60),
            keep_alive_timeout: Duration::from_secs(75),
            queue_timeout: Duration::from_secs(10),
            queue_max: 10_000,
            // Shorter than the common timeouts of servers: 5 s of Node is the shortest.
            upstream_idle_timeout: Duration::from_secs(4),
            upstream_connections_max: 8_192,
            streams_max: 128,
            requests_per_connection: None,
            request_rate: None,
            header_bytes_max: 64 << 10,
            header_fields_max: 100,
            body_bytes_max: 1 << 30,
            // As nghttp2 has it.
            resets_max: 1_000,
            control_frames_max: 1_000,
        }
    }
}

const OPTIONS: [OptionSpec<HttpLimits>; 16] = [
    timeout("header-timeout", |limits| &mut limits.header_timeout, "Deadline of a request's header"),
    timeout(
        "body-timeout",
        |limits| &mut limits.body_timeout,
        "Time without progress of a request's body; then it is given up",
    ),
    timeout(
        "response-timeout",
        |limits| &mut limits.response_timeout,
        "Time for the upstream to begin to respond",
    ),
    timeout(
        "keep-alive-timeout",
        |limits| &mut limits.keep_alive_timeout,
        "Time without requests on a connection; then it is closed",
    ),
    timeout(
        "queue-timeout",
        |limits| &mut limits.queue_timeout,
        "Time a request waits for an upstream; for a connection to it",
    ),
    live_count(
        ("queue-max", (0.0, 1_000_000.0)),
        |limits| &mut limits.queue_max,
        "Requests that wait for upstreams; of each worker. More are refused",
    ),
    timeout(
        "upstream-idle-timeout",
        |limits| &mut limits.upstream_idle_timeout,
        "Time an upstream connection may be unused; then it is closed",
    ),
    live_count(
        ("upstream-connections-max", (1.0, 1_000_000.0)),
        |limits| &mut limits.upstream_connections_max,
        "Upstream connections at once; further requests wait",
    ),
    count(
        ("streams-max", (1.0, 10_000.0)),
        |limits| &mut limits.streams_max,
        "Streams of an HTTP/2 connection at once",
    ),
    OptionSpec::new(
        ("requests-per-connection", "N"),
        Applies::Live,
        OptionKind::Bound { max: 1e9, at: |limits: &mut HttpLimits| &mut limits.requests_per_connection },
        "Requests until a client's connection ends",
    )
    .absent("no bound", "10000"),
    OptionSpec::new(
        ("request-rate", "RATE"),
        Applies::Live,
        OptionKind::Rate(|limits: &mut HttpLimits| &mut limits.request_rate),
        "Rate of requests of a client address, such as 100/s or 6000/m; more are refused with 429. Of IPv6 a /64 counts as one",
    )
    .absent("no bound", "100/s,burst=200"),
    count(
        ("header-bytes-max", (1_024.0, 1_048_576.0)),
        |limits| &mut limits.header_bytes_max,
        "Bytes of a request's header",
    ),
    count(
        ("header-fields-max", (1.0, 10_000.0)),
        |limits| &mut limits.header_fields_max,
        "Fields of a request's header",
    ),
    OptionSpec::new(
        ("body-max", "SIZE"),
        Applies::Live,
        OptionKind::Memory {
            range: (1.0, 1_048_576.0),
            at: |limits: &mut HttpLimits| &mut limits.body_bytes_max,
        },
        "Largest body of a request",
    ),
    count(
        ("resets-max", (1.0, 1_000_000.0)),
        |limits| &mut limits.resets_max,
        "Resets of streams in 30 s; beyond every fourth. After more an HTTP/2 connection is ended",
    ),
    count(
        ("control-frames-max", (1.0, 1_000_000.0)),
        |limits| &mut limits.control_frames_max,
        "Control frames in 30 s: PING, SETTINGS, PRIORITY and WINDOW_UPDATE, beyond those that requests explain. After more \
         an HTTP/2 connection is ended",
    ),
];

const fn timeout(
    name: &'static str,
    at: fn(&mut HttpLimits) -> &mut Duration,
    help: &'static str,
) -> OptionSpec<HttpLimits> {
    OptionSpec::new((name, "TIME"), Applies::Live, OptionKind::Time { range: TIMEOUT_RANGE, at }, help)
}

const fn live_count(
    (name, range): (&'static str, (f64, f64)),
    at: fn(&mut HttpLimits) -> &mut usize,
    help: &'static str,
) -> OptionSpec<HttpLimits> {
    OptionSpec::new((name, "N"), Applies::Live, OptionKind::Count { range, at }, help)
}

const fn count(
    (name, range): (&'static str, (f64, f64)),
    at: fn(&mut HttpLimits) -> &mut usize,
    help: &'static str,
) -> OptionSpec<HttpLimits> {
    OptionSpec::new((name, "N"), Applies::NewConnections, OptionKind::Count { range, at }, help)
}

impl DeclaredOptions for HttpLimits {
    const OPTIONS: &'static [OptionSpec<Self>] = &OPTIONS;
    const NAMES: &'static [&'static str] = &option_names(&OPTIONS);
}
