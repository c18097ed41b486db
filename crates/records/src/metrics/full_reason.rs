//! Why handshakes are full.

use std::fmt;

use super::{ClientCounter, TlsCounter, UsageCounter};

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
    /// The client offered to resume, and packets do not say why the server refused.
    Refused,
    Unknown,
}

impl FullReason {
    /// Each with its counter, and its word in JSON and figures.
    pub const ALL: [(Self, TlsCounter, &'static str); 12] = [
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
        (Self::Refused, TlsCounter::FullRefused, "refused"),
        (Self::Unknown, TlsCounter::FullUnknown, "unknown"),
    ];

    pub fn counter(self) -> TlsCounter {
        Self::ALL[self as usize].1
    }

    /// The client counter of this reason, if clients have one.
    pub fn client_counter(self) -> Option<ClientCounter> {
        match self {
            Self::NoTicket => Some(ClientCounter::FullNoTicket),
            Self::Expired | Self::Evicted => Some(ClientCounter::FullExpired),
            Self::UnknownKey => Some(ClientCounter::FullUnknownKey),
            Self::OtherName | Self::OtherVersion | Self::ClientAuth => Some(ClientCounter::FullMismatch),
            Self::FirstVisit | Self::Damaged | Self::ResumptionOff | Self::Refused | Self::Unknown => None,
        }
    }

    /// The usage counter of this reason, if usage has one.
    pub fn usage_counter(self) -> Option<UsageCounter> {
        match self {
            Self::FirstVisit | Self::NoTicket => Some(UsageCounter::FullNoTicket),
            Self::Expired | Self::Evicted => Some(UsageCounter::FullExpired),
            Self::UnknownKey => Some(UsageCounter::FullUnknownKey),
            Self::OtherName | Self::OtherVersion | Self::ClientAuth => Some(UsageCounter::FullMismatch),
            Self::Damaged | Self::ResumptionOff | Self::Refused | Self::Unknown => None,
        }
    }
}

impl fmt::Display for FullReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::ALL[*self as usize].2)
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
