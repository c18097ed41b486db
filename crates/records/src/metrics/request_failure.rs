//! Why requests of HTTP mode fail.

use std::fmt;
use std::str::FromStr;

use super::HttpCounter;
use crate::text::ParseIdError;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestFailure {
    /// No route serves it.
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
    /// Too many requests waited for an upstream connection.
    QueueFull,
    /// It waited too long for an upstream connection.
    QueueTimeout,
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
    /// Each with its counter, and its word in records.
    pub const ALL: [(Self, HttpCounter, &'static str); 22] = [
        (Self::NoRoute, HttpCounter::FailedNoRoute, "no-route"),
        (Self::Ambiguous, HttpCounter::FailedAmbiguous, "ambiguous-path"),
        (Self::Malformed, HttpCounter::FailedMalformed, "malformed"),
        (Self::Misdirected, HttpCounter::FailedMisdirected, "misdirected"),
        (Self::HeadTimeout, HttpCounter::FailedHeadTimeout, "head-timeout"),
        (Self::BodyTimeout, HttpCounter::FailedBodyTimeout, "body-timeout"),
        (Self::BodyTooLarge, HttpCounter::FailedBodyTooLarge, "body-too-large"),
        (Self::UriTooLong, HttpCounter::FailedUriTooLong, "uri-too-long"),
        (Self::HeaderTooLarge, HttpCounter::FailedHeaderTooLarge, "header-too-large"),
        (Self::QueueFull, HttpCounter::FailedQueueFull, "queue-full"),
        (Self::QueueTimeout, HttpCounter::FailedQueueTimeout, "queue-timeout"),
        (Self::Connect, HttpCounter::FailedConnect, "connect"),
        (Self::ConnectTimeout, HttpCounter::FailedConnectTimeout, "connect-timeout"),
        (Self::UpstreamClosed, HttpCounter::FailedUpstreamClosed, "upstream-closed"),
        (Self::UpstreamInvalid, HttpCounter::FailedUpstreamInvalid, "upstream-invalid"),
        (Self::UpstreamTimeout, HttpCounter::FailedUpstreamTimeout, "upstream-timeout"),
        (Self::UpstreamCut, HttpCounter::FailedUpstreamCut, "upstream-cut"),
        (Self::ClientGone, HttpCounter::FailedClientGone, "client-gone"),
        (Self::DrainTimeout, HttpCounter::FailedDrainTimeout, "drain-timeout"),
        (Self::IdleTimeout, HttpCounter::FailedIdleTimeout, "idle-timeout"),
        (Self::SendTimeout, HttpCounter::FailedSendTimeout, "send-timeout"),
        (Self::PendingBound, HttpCounter::FailedPendingBound, "pending-bound"),
    ];

    /// Its counter.
    pub fn counter(self) -> HttpCounter {
        let entry = Self::ALL.iter().find(|(failure, ..)| *failure == self);
        entry.map_or(HttpCounter::FailedMalformed, |(_, counter, _)| *counter)
    }
}

impl fmt::Display for RequestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = Self::ALL.iter().find(|(failure, ..)| failure == self);
        f.pad(entry.map_or("unknown", |(.., word)| word))
    }
}

impl FromStr for RequestFailure {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let entry = Self::ALL.iter().find(|(.., word)| *word == text);
        entry.map(|(failure, ..)| *failure).ok_or(ParseIdError)
    }
}
