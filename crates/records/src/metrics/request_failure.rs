//! Why requests of HTTP mode fail.

use std::fmt;
use std::str::FromStr;

use super::{HttpCounter, Metric as _};
use crate::text::ParseIdError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestFailure {
    NoRoute,
    /// Its path has a normal form that another route serves.
    Ambiguous,
    /// It breaks the protocol.
    Malformed,
    /// It is for a host that the proxy does not serve on this connection.
    Misdirected,
    /// Its head was not complete in time.
    HeadTimeout,
    /// Its body made no progress in time.
    BodyTimeout,
    /// Its body exceeds its bound.
    BodyTooLarge,
    /// Its target exceeds its bound.
    UriTooLong,
    /// Its header exceeds its bound.
    HeaderTooLarge,
    /// Its client makes requests at more than its rate.
    RequestRate,
    /// Too many requests waited for an upstream connection.
    QueueFull,
    /// It waited too long for an upstream connection.
    QueueTimeout,
    /// All upstreams of its route are drained.
    UpstreamsDrained,
    /// No upstream could be reached.
    Connect,
    /// No upstream could be reached in time.
    ConnectTimeout,
    /// The upstream ended the connection before its response began.
    UpstreamClosed,
    /// The upstream's response is malformed.
    UpstreamInvalid,
    /// The upstream did not begin its response in time.
    UpstreamTimeout,
    /// The upstream broke before its response was complete.
    UpstreamCut,
    /// The client gave it up.
    ClientGone,
    /// It was under way when the drain's time was over.
    DrainTimeout,
    /// Nothing moved on its connection for the idle timeout.
    IdleTimeout,
    /// The client read nothing for the send timeout, although bytes were pending.
    SendTimeout,
    /// Too many bytes waited to be sent on all connections together.
    PendingBound,
}

impl RequestFailure {
    /// Each with its counter, whose label is its word in records.
    pub const ALL: [(Self, HttpCounter); 24] = [
        (Self::NoRoute, HttpCounter::FailedNoRoute),
        (Self::Ambiguous, HttpCounter::FailedAmbiguous),
        (Self::Malformed, HttpCounter::FailedMalformed),
        (Self::Misdirected, HttpCounter::FailedMisdirected),
        (Self::HeadTimeout, HttpCounter::FailedHeadTimeout),
        (Self::BodyTimeout, HttpCounter::FailedBodyTimeout),
        (Self::BodyTooLarge, HttpCounter::FailedBodyTooLarge),
        (Self::UriTooLong, HttpCounter::FailedUriTooLong),
        (Self::HeaderTooLarge, HttpCounter::FailedHeaderTooLarge),
        (Self::RequestRate, HttpCounter::FailedRequestRate),
        (Self::QueueFull, HttpCounter::FailedQueueFull),
        (Self::QueueTimeout, HttpCounter::FailedQueueTimeout),
        (Self::UpstreamsDrained, HttpCounter::FailedUpstreamsDrained),
        (Self::Connect, HttpCounter::FailedConnect),
        (Self::ConnectTimeout, HttpCounter::FailedConnectTimeout),
        (Self::UpstreamClosed, HttpCounter::FailedUpstreamClosed),
        (Self::UpstreamInvalid, HttpCounter::FailedUpstreamInvalid),
        (Self::UpstreamTimeout, HttpCounter::FailedUpstreamTimeout),
        (Self::UpstreamCut, HttpCounter::FailedUpstreamCut),
        (Self::ClientGone, HttpCounter::FailedClientGone),
        (Self::DrainTimeout, HttpCounter::FailedDrainTimeout),
        (Self::IdleTimeout, HttpCounter::FailedIdleTimeout),
        (Self::SendTimeout, HttpCounter::FailedSendTimeout),
        (Self::PendingBound, HttpCounter::FailedPendingBound),
    ];

    pub fn counter(self) -> HttpCounter {
        Self::ALL[self as usize].1
    }
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.counter().names().label)
    }
}

impl FromStr for RequestFailure {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let known = Self::ALL.into_iter().find(|(_, counter)| counter.names().label == text);
        known.map(|(failure, _)| failure).ok_or(ParseIdError)
    }
}
