//! The record of a certificate that is served.

use crate::wire::{field, wire};

/// Certificates that are known of a run; more are neither written nor taken from a journal.
pub const CERTIFICATES_MAX: usize = 256;

wire! {
    /// One certificate, with its chain: when it is first seen, when something changes, and once a minute.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct CertificateRecord {
        /// The beginning of its SHA-256, in hexadecimal.
        pub fingerprint: String = &field::CERTIFICATE_FINGERPRINT,
        /// The file that it was read from; empty if it was made in memory.
        pub file: String = &field::CERTIFICATE_FILE,
        /// Its first names, separated by blanks.
        pub names: String = &field::CERTIFICATE_NAMES,
        /// Further names that are not listed.
        pub more_names: u64 = &field::CERTIFICATE_MORE_NAMES,
        pub issuer: String = &field::CERTIFICATE_ISSUER,
        /// In hexadecimal.
        pub serial: String = &field::CERTIFICATE_SERIAL,
        /// The key type, such as `ECDSA P-256`.
        pub key: String = &field::CERTIFICATE_KEY,
        /// Certificates in the chain, this one included.
        pub chain: u64 = &field::CERTIFICATE_CHAIN,
        /// The chain in DER.
        pub chain_bytes: u64 = &field::CERTIFICATE_CHAIN_BYTES,
        /// Its validity, in seconds since 1970.
        pub not_before: u64 = &field::CERTIFICATE_NOT_BEFORE,
        pub not_after: u64 = &field::CERTIFICATE_NOT_AFTER,
        /// Since when it is served, in seconds since 1970.
        pub since: u64 = &field::CERTIFICATE_SINCE,
        /// Full handshakes of the run that it was presented in.
        pub handshakes: u64 = &field::CERTIFICATE_HANDSHAKES,
        /// Whether clients without a name of a certificate get it.
        pub is_default: bool = &field::CERTIFICATE_DEFAULT,
        /// When the stapled OCSP response ends, in seconds since 1970; 0 if none is stapled.
        pub stapled_until: u64 = &field::CERTIFICATE_STAPLED_UNTIL,
        /// Whether it demands a stapled response (RFC 7633).
        pub must_staple: bool = &field::CERTIFICATE_MUST_STAPLE,
        /// What is wrong with the chain, in words separated by semicolons; empty if nothing is known to be.
        pub faults: String = &field::CERTIFICATE_FAULTS,
        /// Why its files, as they are now, are not in use; empty if they are.
        pub refusal: String = &field::CERTIFICATE_REFUSAL,
        /// When it is ordered next by ACME, in seconds since 1970; 0 if it is not.
        pub renewal_at: u64 = &field::CERTIFICATE_RENEWAL_AT,
        /// Why the last order by ACME has failed; empty if it has not.
        pub renewal_error: String = &field::CERTIFICATE_RENEWAL_ERROR,
        /// Whether another one has replaced it.
        pub is_replaced: bool = &field::CERTIFICATE_REPLACED,
    }
}

impl CertificateRecord {
    /// Tells it from others of the run.
    pub fn key(&self) -> (&str, &str) {
        (&self.file, &self.fingerprint)
    }

    /// Its first name, or else that it has none.
    pub fn name(&self) -> &str {
        self.names.split(' ').next().filter(|name| !name.is_empty()).unwrap_or("no name")
    }

    /// How many names it has besides its first one.
    pub fn further_names(&self) -> u64 {
        let listed = self.names.split_whitespace().count() as u64;
        self.more_names.saturating_add(listed.saturating_sub(1))
    }

    /// Days from that of a moment, in seconds since 1970, to its last one; negative once it has ended.
    pub fn days_left(&self, now: u64) -> i64 {
        let day = |unix: u64| (unix / 86_400).cast_signed();
        let days = day(self.not_after) - day(now);
        if self.not_after < now { days.min(-1) } else { days }
    }

    /// Whether it demands a stapled OCSP response, and none in force at this moment, in seconds since 1970, is stapled.
    pub fn lacks_staple(&self, now: u64) -> bool {
        self.must_staple && self.stapled_until <= now
    }

    /// Counts from an earlier record of the same certificate on.
    pub(crate) fn rebase(&mut self, handshakes_before: u64) {
        self.handshakes = self.handshakes.saturating_sub(handshakes_before);
    }
}
