//! The classes of latencies: what people and programs call them, and what each one times.

use super::{LoadLatency, Metric, ProxyLatency};

/// A class of latencies of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyClass {
    /// Timed by the proxy.
    Proxy(ProxyLatency),
    /// Timed by the load generator.
    Load(LoadLatency),
}

/// The names of a class, and the moments between which it times.
#[derive(Debug)]
pub struct ClassInfo {
    /// Its name in figures, JSON and CSV.
    pub key: &'static str,
    /// Its label on the screen and in plots.
    pub title: &'static str,
    /// A short form of the title that the screen uses too; empty if it has none.
    pub alias: &'static str,
    /// What a reader must know beside the title; may be empty.
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

impl From<LoadLatency> for LatencyClass {
    fn from(class: LoadLatency) -> Self {
        Self::Load(class)
    }
}

impl LatencyClass {
    /// Every class: the proxy's, then the load's.
    pub fn all() -> impl Iterator<Item = Self> {
        let proxy = ProxyLatency::ALL.iter().copied().map(Self::Proxy);
        proxy.chain(LoadLatency::ALL.iter().copied().map(Self::Load))
    }

    /// `proxy` or `load`.
    pub fn side(self) -> &'static str {
        match self {
            Self::Proxy(_) => "proxy",
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

    /// What it times, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Proxy(class) => &class.field().meaning,
            Self::Load(class) => &class.field().meaning,
        }
    }

    /// Its names and what it times.
    pub fn info(self) -> &'static ClassInfo {
        match self {
            Self::Proxy(class) => of_proxy(class),
            Self::Load(class) => of_load(class),
        }
    }
}

/// A class without alias and note.
const fn timed(key: &'static str, title: &'static str, start: &'static str, end: &'static str) -> ClassInfo {
    ClassInfo { key, title, alias: "", note: "", start, end }
}

const fn with_alias(alias: &'static str, info: ClassInfo) -> ClassInfo {
    ClassInfo { alias, ..info }
}

const fn with_note(note: &'static str, info: ClassInfo) -> ClassInfo {
    ClassInfo { note, ..info }
}

fn of_proxy(class: ProxyLatency) -> &'static ClassInfo {
    const HELLO: &str = "first byte of the ClientHello read";
    const DONE: &str = "handshake complete";
    match class {
        ProxyLatency::HandshakeFull => {
            const { &with_alias("full", timed("handshake_full", "full handshake", HELLO, DONE)) }
        }
        ProxyLatency::HandshakeResumed => {
            const { &with_alias("resumed", timed("handshake_resumed", "resumed handshake", HELLO, DONE)) }
        }
        ProxyLatency::ComputeFull => {
            const {
                &timed(
                    "compute_full",
                    "compute full",
                    "each call into the TLS library",
                    "its return; summed over a full handshake",
                )
            }
        }
        ProxyLatency::ComputeResumed => {
            const {
                &timed(
                    "compute_resumed",
                    "compute resumed",
                    "each call into the TLS library",
                    "its return; summed over a resumed handshake",
                )
            }
        }
        ProxyLatency::Connect => {
            const { &timed("connect", "connect", "connecting to the upstream begun", "connected to the upstream") }
        }
        ProxyLatency::Exchange => {
            const {
                &timed(
                    "exchange",
                    "exchange",
                    "last byte from the client before the upstream answered",
                    "first byte of the upstream's answer",
                )
            }
        }
        ProxyLatency::Lifetime => {
            const { &timed("lifetime", "lifetime", "connection accepted", "connection closed") }
        }
    }
}

fn of_load(class: LoadLatency) -> &'static ClassInfo {
    const DUE: &str = "request due by the schedule";
    const SENT: &str = "first byte of the request sent";
    const ANSWERED: &str = "whole answer received";
    const TAKEN: &str = "connection taken or opened for the request";
    const CONNECTED: &str = "TCP connected";
    match class {
        LoadLatency::Response => {
            const { &with_note("CO-corrected", timed("response", "response", DUE, ANSWERED)) }
        }
        LoadLatency::Service => {
            const { &with_note("uncorrected", timed("service", "service", SENT, ANSWERED)) }
        }
        LoadLatency::Lag => const { &timed("lag", "send lag", DUE, SENT) },
        LoadLatency::Connect => const { &timed("connect", "connect", "connecting begun", CONNECTED) },
        LoadLatency::HandshakeFull => {
            const {
                &with_alias(
                    "full",
                    timed("handshake_full", "full handshake", CONNECTED, "full handshake complete"),
                )
            }
        }
        LoadLatency::HandshakeResumed => {
            const {
                &with_alias(
                    "resumed",
                    timed(
                        "handshake_resumed",
                        "resumed handshake",
                        CONNECTED,
                        "resumed handshake complete, without early data that was accepted",
                    ),
                )
            }
        }
        LoadLatency::HandshakeEarly => {
            const {
                &timed(
                    "handshake_early",
                    "handshake with early data",
                    CONNECTED,
                    "resumed handshake complete whose early data was accepted",
                )
            }
        }
        LoadLatency::FirstByte => {
            const { &timed("first_byte", "first byte", SENT, "first byte of the answer received") }
        }
        LoadLatency::Total => const { &timed("total", "total", TAKEN, ANSWERED) },
        LoadLatency::TotalPlain => {
            const { &timed("total_plain", "total, plain", "new connection without TLS begun", ANSWERED) }
        }
        LoadLatency::TotalFull => {
            const {
                &timed(
                    "total_full",
                    "total, full handshake",
                    "new connection with a full handshake begun",
                    ANSWERED,
                )
            }
        }
        LoadLatency::TotalResumed => {
            const {
                &timed(
                    "total_resumed",
                    "total, resumed handshake",
                    "new connection with a resumed handshake begun",
                    ANSWERED,
                )
            }
        }
        LoadLatency::TotalEarly => {
            const {
                &timed(
                    "total_early",
                    "total, early data",
                    "new connection with accepted early data begun",
                    ANSWERED,
                )
            }
        }
        LoadLatency::TotalKept => {
            const { &timed("total_kept", "total, kept alive", "kept-alive connection taken", ANSWERED) }
        }
    }
}
