//! Why certificates of clients are refused.

use super::ProxyCounter;

/// Why a client was refused for its certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CertificateRefusal {
    /// The client sent none, and needs one.
    NotSent,
    /// No trusted authority has issued it.
    UnknownCa,
    Expired,
    NotYetValid,
    Revoked,
    /// No revocation list that is in force says whether it is revoked.
    RevocationUnknown,
    /// It is not for clients.
    WrongUsage,
    /// Its signature, or the client's with its key, is not right.
    BadSignature,
    /// It has more intermediates than are followed, or than one of its authorities allows.
    ChainTooDeep,
    Other,
}

impl CertificateRefusal {
    /// Each with its counter, and in words.
    pub const ALL: [(Self, ProxyCounter, &'static str); 10] = [
        (Self::NotSent, ProxyCounter::CertificateNotSent, "sends no certificate"),
        (Self::UnknownCa, ProxyCounter::CertificateUnknownCa, "certificate of an unknown CA"),
        (Self::Expired, ProxyCounter::CertificateExpired, "certificate expired"),
        (Self::NotYetValid, ProxyCounter::CertificateNotYetValid, "certificate not yet valid"),
        (Self::Revoked, ProxyCounter::CertificateRevoked, "certificate revoked"),
        (Self::RevocationUnknown, ProxyCounter::CertificateRevocationUnknown, "no CRL for its certificate"),
        (Self::WrongUsage, ProxyCounter::CertificateWrongUsage, "certificate not for clients"),
        (Self::BadSignature, ProxyCounter::CertificateBadSignature, "bad certificate signature"),
        (Self::ChainTooDeep, ProxyCounter::CertificateChainTooDeep, "certificate chain too deep"),
        (Self::Other, ProxyCounter::CertificateOther, "certificate refused"),
    ];

    pub fn counter(self) -> ProxyCounter {
        Self::ALL[self as usize].1
    }

    pub fn words(self) -> &'static str {
        Self::ALL[self as usize].2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_stands_at_its_place_with_a_counter_of_its_own() {
        for (place, (refusal, counter, words)) in CertificateRefusal::ALL.into_iter().enumerate() {
            assert_eq!((refusal as usize, refusal.counter(), refusal.words()), (place, counter, words));
        }
    }
}
