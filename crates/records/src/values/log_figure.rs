//! Figures that the log of another terminator may not have.

use crate::metrics::{
    ClientCounter, Field, HttpLatency, LatencyClass, ProxyCounter, ProxyLatency, TlsLatency,
};
use crate::text::clean;
use crate::wire::{DecodeError, FieldSource, WireField};
use journal::EntryBuf;

/// A figure that proxy and load always have, and logs do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogFigure {
    /// Connections, handshakes and requests under way.
    Open,
    HandshakeTime,
    /// The cost of handshakes.
    HandshakeCpu,
    /// The parts of the time of handshakes.
    HandshakeParts,
    FullReasons,
    FailureCauses,
    Failures,
    /// Versions, cipher suites and whether handshakes were resumed.
    Handshakes,
    Groups,
    Alpn,
    Names,
    /// Connections that made no request.
    IdleConnections,
    /// Connecting to the upstream.
    Connect,
    /// Accept to close.
    Lifetime,
    /// Request to first byte of the answer, for bytes that are not HTTP.
    Exchange,
    /// Request to first byte of the answer, of HTTP.
    FirstByte,
    /// Waiting for an upstream connection.
    Queue,
    RequestBodies,
    ResponseBodies,
    /// Bytes to the byte.
    ExactBytes,
    /// Bytes of each client.
    Bytes,
    /// Lines that did not arrive.
    LostLines,
}

impl LogFigure {
    /// Each with its name on the screen and in records.
    pub const ALL: [(Self, &'static str); 22] = [
        (Self::Open, "open connections"),
        (Self::HandshakeTime, "handshake time"),
        (Self::HandshakeCpu, "handshake CPU time"),
        (Self::HandshakeParts, "where handshake time goes"),
        (Self::FullReasons, "why handshakes were full"),
        (Self::FailureCauses, "causes of failed handshakes"),
        (Self::Failures, "failed handshakes"),
        (Self::Handshakes, "handshakes"),
        (Self::Groups, "groups"),
        (Self::Alpn, "application protocols"),
        (Self::Names, "server names"),
        (Self::IdleConnections, "connections without a request"),
        (Self::Connect, "upstream connect"),
        (Self::Lifetime, "connection lifetime"),
        (Self::Exchange, "exchange"),
        (Self::FirstByte, "time to first byte"),
        (Self::Queue, "queue"),
        (Self::RequestBodies, "request bodies"),
        (Self::ResponseBodies, "response bodies"),
        (Self::ExactBytes, "exact bytes"),
        (Self::Bytes, "bytes"),
        (Self::LostLines, "lost lines"),
    ];

    /// Its name on the screen and in records.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }

    /// The figure of a latency class; `None` for a class that a log of requests always has.
    pub fn of_class(class: LatencyClass) -> Option<Self> {
        match class {
            LatencyClass::Proxy(class) => Some(match class {
                ProxyLatency::HandshakeFull | ProxyLatency::HandshakeResumed => Self::HandshakeTime,
                ProxyLatency::ComputeFull | ProxyLatency::ComputeResumed => Self::HandshakeCpu,
                ProxyLatency::Connect => Self::Connect,
                ProxyLatency::Exchange => Self::Exchange,
                ProxyLatency::Lifetime => Self::Lifetime,
            }),
            LatencyClass::Tls(TlsLatency::KeyExchange | TlsLatency::Signature) => Some(Self::HandshakeCpu),
            LatencyClass::Tls(_) => Some(Self::HandshakeParts),
            LatencyClass::Http(HttpLatency::FirstByte) => Some(Self::FirstByte),
            LatencyClass::Http(HttpLatency::Queue) => Some(Self::Queue),
            LatencyClass::Http(_) | LatencyClass::Load(_) => None,
        }
    }

    /// The figure of a counter; `None` for a counter that every log has.
    pub fn of_counter(counter: ProxyCounter) -> Option<Self> {
        match counter {
            ProxyCounter::HandshakesFull | ProxyCounter::HandshakesResumed => Some(Self::Handshakes),
            ProxyCounter::HandshakesFailed => Some(Self::Failures),
            ProxyCounter::LinesLost => Some(Self::LostLines),
            _ => None,
        }
    }

    /// The figure of a client's counter; `None` for a counter that every log has.
    pub fn of_client_counter(counter: ClientCounter) -> Option<Self> {
        match counter {
            ClientCounter::Connections | ClientCounter::HandshakesFull | ClientCounter::HandshakesResumed => {
                Some(Self::Handshakes)
            }
            ClientCounter::Exchanges => Some(Self::Exchange),
            ClientCounter::BytesIn => Some(Self::Bytes),
            _ => None,
        }
    }

    /// Whether it is known only of connections that have been counted.
    pub fn is_of_connections(self) -> bool {
        !matches!(
            self,
            Self::Open
                | Self::FirstByte
                | Self::Queue
                | Self::RequestBodies
                | Self::ResponseBodies
                | Self::ExactBytes
                | Self::Bytes
                | Self::LostLines
        )
    }
}

/// Figures that a log does not have: `name: reason`, separated by a semicolon and a space.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AbsentFigures(String);

impl AbsentFigures {
    pub fn new<'r>(figures: impl IntoIterator<Item = (LogFigure, &'r str)>) -> Self {
        let parts: Vec<_> =
            figures.into_iter().map(|(figure, reason)| format!("{}: {reason}", figure.name())).collect();
        Self(parts.join("; "))
    }

    /// Adds those of others that are not among these.
    pub fn extend(&mut self, others: &Self) {
        for (figure, name) in LogFigure::ALL {
            if let Some(reason) = others.reason(figure).filter(|_| self.reason(figure).is_none()) {
                let separator = if self.0.is_empty() { "" } else { "; " };
                self.0 = format!("{}{separator}{name}: {reason}", self.0);
            }
        }
    }

    /// All in one line, as records have it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Each as `name: reason`. A reason may have semicolons, so that a figure begins only where its name does.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let begins = |text: &str| {
            LogFigure::ALL.iter().any(|(_, name)| {
                text.strip_prefix("; ")
                    .and_then(|text| text.strip_prefix(name))
                    .is_some_and(|rest| rest.starts_with(": "))
            })
        };
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let ends = rest.match_indices("; ").map(|(at, _)| at).find(|&at| begins(&rest[at..]));
            let (part, after) = rest.split_at(ends.unwrap_or(rest.len()));
            rest = after.strip_prefix("; ").unwrap_or_default();
            (!part.is_empty()).then_some(part)
        })
    }

    /// Why a figure is not given; `None` if it is.
    pub fn reason(&self, figure: LogFigure) -> Option<&str> {
        self.iter()
            .find_map(|part| part.split_once(": ").filter(|(name, _)| *name == figure.name()))
            .map(|it| it.1)
    }
}

impl From<&str> for AbsentFigures {
    /// A line of a record, cleaned.
    fn from(text: &str) -> Self {
        Self(clean::line(text))
    }
}

/// Longer than a peer's text, since each figure has its reason.
impl WireField for AbsentFigures {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if !self.as_str().is_empty() {
            out.push(&field.name, self.as_str().as_bytes());
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        Ok(from.text(&field.name).map(Self::from).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_the_name_at_its_place() {
        for (at, (figure, name)) in LogFigure::ALL.into_iter().enumerate() {
            assert_eq!((figure as usize, figure.name()), (at, name));
        }
    }

    #[test]
    fn the_reason_of_one_figure_is_found_among_others() {
        let absent = "handshake time: not logged; the request's time is; handshakes: no TLS in it, add: a;; exchange: none";
        let absent = AbsentFigures::from(absent);
        assert_eq!(absent.reason(LogFigure::HandshakeTime), Some("not logged; the request's time is"));
        assert_eq!(absent.reason(LogFigure::Handshakes), Some("no TLS in it, add: a;"));
        assert_eq!(absent.reason(LogFigure::Exchange), Some("none"));
        assert_eq!(absent.reason(LogFigure::Open), None);
        let mut more = AbsentFigures::default();
        more.extend(&"exchange: another".into());
        more.extend(&absent);
        assert_eq!(more.reason(LogFigure::Exchange), Some("another"), "the first stays");
        assert_eq!(
            (more.reason(LogFigure::Handshakes), more.iter().count()),
            (absent.reason(LogFigure::Handshakes), 3)
        );
        assert_eq!(absent.iter().count(), 3);
    }
}
