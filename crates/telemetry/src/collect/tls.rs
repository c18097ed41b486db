//! TLS counters of a worker, besides those of every proxy.

use std::fmt;

use crate::histogram::Histograms;
use crate::metrics::{ClientCounter, Counters, TlsCounter, TlsLatency, UsageCounter};
use crate::record::age_counts::AgeCounts;
use crate::record::keywords::keyword_enum;

/// Why a handshake was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FullReason {
    /// No offer to resume, and the address was not seen before.
    FirstVisit,
    /// No offer to resume, of an address that was seen before.
    NoTicket,
    /// The ticket or session was older than the lifetime.
    Expired,
    /// The ticket's key is not known: forgotten, or of another host.
    UnknownKey,
    /// The ticket's key is known, and does not open it.
    Damaged,
    /// The ticket is for another server name.
    OtherName,
    /// The ticket is for another TLS version or cipher.
    OtherVersion,
    /// The ticket was issued under other rules for client certificates.
    ClientAuth,
    /// Resumption is off, and the client is a returning one or offered to resume.
    ResumptionOff,
    /// The session is no longer in the session cache.
    Evicted,
    /// The reason is unknown.
    Unknown,
}

impl FullReason {
    /// Each with its counter, and its word in JSON and figures.
    pub const ALL: [(Self, TlsCounter, &'static str); 11] = [
        (Self::FirstVisit, TlsCounter::FullFirstVisit, "first_visit"),
        (Self::NoTicket, TlsCounter::FullNoTicket, "no_ticket"),
        (Self::Expired, TlsCounter::FullExpired, "expired"),
        (Self::UnknownKey, TlsCounter::FullUnknownKey, "unknown_key"),
        (Self::Damaged, TlsCounter::FullDamaged, "damaged"),
        (Self::OtherName, TlsCounter::FullOtherName, "other_name"),
        (Self::OtherVersion, TlsCounter::FullOtherVersion, "other_version"),
        (Self::ClientAuth, TlsCounter::FullClientAuth, "client_auth"),
        (Self::ResumptionOff, TlsCounter::FullResumptionOff, "resumption_off"),
        (Self::Evicted, TlsCounter::FullEvicted, "evicted"),
        (Self::Unknown, TlsCounter::FullUnknown, "unknown"),
    ];

    /// Its counter.
    pub fn counter(self) -> TlsCounter {
        Self::ALL[self as usize].1
    }

    /// The client counter of this reason, if clients have one.
    pub fn of_client(self) -> Option<ClientCounter> {
        match self {
            Self::NoTicket => Some(ClientCounter::FullNoTicket),
            Self::Expired | Self::Evicted => Some(ClientCounter::FullExpired),
            Self::UnknownKey => Some(ClientCounter::FullUnknownKey),
            Self::OtherName | Self::OtherVersion | Self::ClientAuth => Some(ClientCounter::FullMismatch),
            Self::FirstVisit | Self::Damaged | Self::ResumptionOff | Self::Unknown => None,
        }
    }

    /// The usage counter of this reason, if usage has one.
    pub fn of_usage(self) -> Option<UsageCounter> {
        match self {
            Self::FirstVisit | Self::NoTicket => Some(UsageCounter::FullNoTicket),
            Self::Expired | Self::Evicted => Some(UsageCounter::FullExpired),
            Self::UnknownKey => Some(UsageCounter::FullUnknownKey),
            Self::OtherName | Self::OtherVersion | Self::ClientAuth => Some(UsageCounter::FullMismatch),
            Self::Damaged | Self::ResumptionOff | Self::Unknown => None,
        }
    }
}

impl fmt::Display for FullReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::ALL[*self as usize].2)
    }
}

keyword_enum! {
    /// A property by which handshakes and traffic are counted.
    Dimension {
        /// TLS version, such as `TLSv1.3`.
        #[default]
        Version = "version",
        /// Group of the key exchange, by its IANA name.
        Group = "group",
        /// Cipher suite, by its IANA name.
        Cipher = "cipher",
        /// Scheme of the proxy's signature, by its IANA name; full handshakes only.
        Signature = "signature",
        /// Application protocol; `none` without one.
        Alpn = "alpn",
        /// Certificate presented, by its first name; full handshakes only.
        Certificate = "certificate",
        /// Server name that the client asked for; `none` without one.
        Name = "name",
        /// Fingerprint of the client's TLS library (JA4).
        Fingerprint = "fingerprint",
    }
}

/// The most server names, and fingerprints, that are counted separately; further ones are summed as [`OTHER_VALUE`].
pub const USAGE_VALUES_MAX: usize = 1_000;
/// The value for all values of a dimension beyond the limit.
pub const OTHER_VALUE: &str = "other";

/// TLS counters of one worker over an interval.
#[derive(Clone, Debug, Default)]
pub struct TlsDelta {
    /// Counts since the last hand-over.
    pub counters: Counters<TlsCounter>,
    /// Latencies since the last hand-over.
    pub latencies: Histograms<TlsLatency>,
    /// Ages of tickets and sessions that resumed.
    pub ages_accepted: AgeCounts,
    /// Ages of tickets and sessions that were too old.
    pub ages_expired: AgeCounts,
    /// Values with changes since the last hand-over, each at most once a worker.
    pub usage: Vec<UsageDelta>,
}

/// Counters of one worker for one value of a dimension over an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageDelta {
    /// The dimension.
    pub dimension: Dimension,
    /// The value, cleaned.
    pub value: Box<str>,
    /// Counts since the last hand-over.
    pub counters: Counters<UsageCounter>,
}

impl TlsDelta {
    /// Adds the counts of another worker, or of the same worker later.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.latencies.add(&other.latencies);
        self.ages_accepted.add(&other.ages_accepted);
        self.ages_expired.add(&other.ages_expired);
        self.usage.extend_from_slice(&other.usage);
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        let Self { counters, latencies, ages_accepted, ages_expired, usage } = self;
        *counters = Counters::default();
        latencies.clear();
        ages_accepted.clear();
        ages_expired.clear();
        usage.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_stands_at_its_place_with_a_counter_of_its_own() {
        for (place, (reason, counter, word)) in FullReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{word}");
            assert_eq!((reason.counter(), reason.to_string().as_str()), (counter, word));
        }
    }
}
