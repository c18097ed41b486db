//! The classes of latencies: their names for people and programs, and their definitions.

use super::{HttpLatency, LoadLatency, Metric, ProxyLatency, TlsLatency};

/// A class of latencies of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyClass {
    /// Timed by the proxy.
    Proxy(ProxyLatency),
    /// A part of the proxy's handshakes.
    Tls(TlsLatency),
    /// Timed by the proxy in HTTP mode.
    Http(HttpLatency),
    /// Timed by the load generator.
    Load(LoadLatency),
}

/// The names of a class, and the moments between which it times.
#[derive(Clone, Copy, Debug)]
pub struct ClassInfo {
    /// Its name in figures, JSON and CSV.
    pub key: &'static str,
    /// Its label on the screen and in plots.
    pub title: &'static str,
    /// A short form of the title that the screen uses too; empty if it has none.
    pub alias: &'static str,
    /// A note for the reader besides the title; may be empty.
    pub note: &'static str,
    /// When a sample starts.
    pub start: &'static str,
    /// When a sample ends.
    pub end: &'static str,
}

impl From<ProxyLatency> for LatencyClass {
    fn from(class: ProxyLatency) -> Self {
        Self::Proxy(class)
    }
}

impl From<TlsLatency> for LatencyClass {
    fn from(class: TlsLatency) -> Self {
        Self::Tls(class)
    }
}

impl From<HttpLatency> for LatencyClass {
    fn from(class: HttpLatency) -> Self {
        Self::Http(class)
    }
}

impl From<LoadLatency> for LatencyClass {
    fn from(class: LoadLatency) -> Self {
        Self::Load(class)
    }
}

impl HttpLatency {
    /// Whether it times requests of one protocol alone.
    pub fn is_of_one_protocol(self) -> bool {
        match self {
            Self::FirstByte1 | Self::FirstByte2 | Self::Request1 | Self::Request2 => true,
            Self::Queue | Self::Upstream | Self::FirstByte | Self::Request => false,
        }
    }
}

impl LatencyClass {
    /// Every class: the proxy's, then the parts of its handshakes, those of HTTP mode, and the load's.
    pub fn all() -> impl Iterator<Item = Self> {
        let proxy = ProxyLatency::ALL.iter().copied().map(Self::Proxy);
        let tls = TlsLatency::ALL.iter().copied().map(Self::Tls);
        let http = HttpLatency::ALL.iter().copied().map(Self::Http);
        proxy.chain(tls).chain(http).chain(LoadLatency::ALL.iter().copied().map(Self::Load))
    }

    /// `proxy` or `load`.
    pub fn side(self) -> &'static str {
        match self {
            Self::Proxy(_) | Self::Tls(_) | Self::Http(_) => "proxy",
            Self::Load(_) => "load",
        }
    }

    /// Its name in figures, JSON and CSV, such as `handshake_full`.
    pub fn key(self) -> &'static str {
        self.info().key
    }

    /// Its label on the screen and in plots, such as `full handshake`.
    pub fn title(self) -> &'static str {
        self.info().title
    }

    /// The definition, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Proxy(class) => &class.field().meaning,
            Self::Tls(class) => &class.field().meaning,
            Self::Http(class) => &class.field().meaning,
            Self::Load(class) => &class.field().meaning,
        }
    }

    /// Its names and definition.
    pub fn info(self) -> ClassInfo {
        match self {
            Self::Proxy(class) => of_proxy(class),
            Self::Tls(class) => of_tls(class),
            Self::Http(class) => of_http(class),
            Self::Load(class) => of_load(class),
        }
    }
}

/// A class without alias and note.
fn timed(key: &'static str, title: &'static str, start: &'static str, end: &'static str) -> ClassInfo {
    ClassInfo { key, title, alias: "", note: "", start, end }
}

fn of_proxy(class: ProxyLatency) -> ClassInfo {
    const HELLO: &str = "worker learns of the ClientHello";
    const DONE: &str = "handshake complete";
    const CALL: &str = "each call into the TLS library";
    match class {
        ProxyLatency::HandshakeFull => {
            ClassInfo { alias: "full", ..timed("handshake_full", "full handshake", HELLO, DONE) }
        }
        ProxyLatency::HandshakeResumed => {
            ClassInfo { alias: "resumed", ..timed("handshake_resumed", "resumed handshake", HELLO, DONE) }
        }
        ProxyLatency::ComputeFull => {
            timed("compute_full", "full handshake CPU", CALL, "its return; summed over a full handshake")
        }
        ProxyLatency::ComputeResumed => timed(
            "compute_resumed",
            "resumed handshake CPU",
            CALL,
            "its return; summed over a resumed handshake",
        ),
        ProxyLatency::Connect => {
            timed("connect", "connect", "connecting to the upstream begun", "connected to the upstream")
        }
        ProxyLatency::Exchange => timed(
            "exchange",
            "exchange",
            "last byte from the client before the upstream answered",
            "first byte of the upstream's answer",
        ),
        ProxyLatency::Lifetime => timed("lifetime", "lifetime", "connection accepted", "connection closed"),
    }
}

fn of_tls(class: TlsLatency) -> ClassInfo {
    const FLIGHT: &str = "each flight sent";
    const CAME: &str = "data of the client came";
    let network = |key, title, end| ClassInfo { note: "estimated", ..timed(key, title, FLIGHT, end) };
    match class {
        TlsLatency::NetworkFull => network(
            "wait_network_full",
            "full, network",
            "one round-trip time later, or the answer; summed over a full handshake",
        ),
        TlsLatency::NetworkResumed => network(
            "wait_network_resumed",
            "resumed, network",
            "one round-trip time later, or the answer; summed over a resumed handshake",
        ),
        TlsLatency::ClientFull => timed(
            "wait_client_full",
            "full, client",
            "one round-trip time after each flight",
            "the client's answer; summed over a full handshake",
        ),
        TlsLatency::ClientResumed => timed(
            "wait_client_resumed",
            "resumed, client",
            "one round-trip time after each flight",
            "the client's answer; summed over a resumed handshake",
        ),
        TlsLatency::WorkerFull => timed(
            "wait_worker_full",
            "full, loop delay",
            CAME,
            "the worker read it; summed over a full handshake",
        ),
        TlsLatency::WorkerResumed => timed(
            "wait_worker_resumed",
            "resumed, loop delay",
            CAME,
            "the worker read it; summed over a resumed handshake",
        ),
        TlsLatency::KeyExchange => {
            timed("key_exchange", "key exchange CPU", "each call for the key exchange", "its return")
        }
        TlsLatency::Signature => timed("signature", "signature CPU", "each signature begun", "it is made"),
    }
}

fn of_http(class: HttpLatency) -> ClassInfo {
    const HEAD: &str = "request head received";
    const HANDED: &str = "first byte of the response handed to the client";
    const TAKEN: &str = "last byte of the response taken by the kernel";
    match class {
        HttpLatency::Queue => ClassInfo {
            alias: "queue",
            ..timed(
                "http.queue",
                "HTTP queue",
                "all upstream connections in use when the request came",
                "upstream connection assigned, or the request gave up",
            )
        },
        HttpLatency::Upstream => ClassInfo {
            alias: "upstream",
            ..timed(
                "http.upstream",
                "HTTP upstream",
                "request head sent to the upstream",
                "response head received",
            )
        },
        HttpLatency::FirstByte => {
            ClassInfo { alias: "ttfb", ..timed("http.first_byte", "HTTP first byte", HEAD, HANDED) }
        }
        HttpLatency::Request => ClassInfo {
            alias: "request",
            note: "slow clients included",
            ..timed(
                "http.request",
                "HTTP request",
                "first byte of the request (HTTP/2: its complete header)",
                TAKEN,
            )
        },
        HttpLatency::FirstByte1 => timed("http.first_byte_http1", "HTTP/1.1 first byte", HEAD, HANDED),
        HttpLatency::FirstByte2 => timed("http.first_byte_http2", "HTTP/2 first byte", HEAD, HANDED),
        HttpLatency::Request1 => {
            timed("http.request_http1", "HTTP/1.1 request", "first byte of the request", TAKEN)
        }
        HttpLatency::Request2 => {
            timed("http.request_http2", "HTTP/2 request", "complete header of the request", TAKEN)
        }
    }
}

fn of_load(class: LoadLatency) -> ClassInfo {
    const DUE: &str = "request due by the schedule";
    const SENT: &str = "first byte of the request sent";
    const ANSWERED: &str = "whole answer received";
    const CONNECTED: &str = "TCP connected";
    let total = |key, title, start| timed(key, title, start, ANSWERED);
    match class {
        LoadLatency::Response => {
            ClassInfo { note: "CO-corrected", ..timed("response", "response", DUE, ANSWERED) }
        }
        LoadLatency::Service => {
            ClassInfo { note: "uncorrected", ..timed("service", "service", SENT, ANSWERED) }
        }
        LoadLatency::Lag => timed("lag", "send lag", DUE, SENT),
        LoadLatency::Connect => timed("connect", "connect", "connecting begun", CONNECTED),
        LoadLatency::HandshakeFull => ClassInfo {
            alias: "full",
            ..timed("handshake_full", "full handshake", CONNECTED, "full handshake complete")
        },
        LoadLatency::HandshakeResumed => {
            let end = "resumed handshake complete, without early data that was accepted";
            ClassInfo { alias: "resumed", ..timed("handshake_resumed", "resumed handshake", CONNECTED, end) }
        }
        LoadLatency::HandshakeEarly => {
            let end = "resumed handshake complete whose early data was accepted";
            timed("handshake_early", "handshake with early data", CONNECTED, end)
        }
        LoadLatency::FirstByte => {
            timed("first_byte", "first byte", SENT, "first byte of the answer received")
        }
        LoadLatency::Total => total("total", "total", "connection taken or opened for the request"),
        LoadLatency::TotalPlain => total("total_plain", "total, plain", "new connection without TLS begun"),
        LoadLatency::TotalFull => {
            total("total_full", "total, full handshake", "new connection with a full handshake begun")
        }
        LoadLatency::TotalResumed => total(
            "total_resumed",
            "total, resumed handshake",
            "new connection with a resumed handshake begun",
        ),
        LoadLatency::TotalEarly => {
            total("total_early", "total, early data", "new connection with accepted early data begun")
        }
        LoadLatency::TotalKept => total("total_kept", "total, kept alive", "kept-alive connection taken"),
    }
}
