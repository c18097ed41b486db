//! Labels of counters that the screen and reports share: TLS parameters, why handshakes are full, and why handshakes and
//! requests fail.

use super::{
    ClientCounter, HttpCounter, LoadCounter, ProxyCounter, RouteLatency, TlsCounter, TlsLatency, UsageCounter,
};

/// Key exchange groups, by their IANA names.
pub const GROUPS: [(&str, ProxyCounter); 5] = [
    ("X25519MLKEM768", ProxyCounter::GroupMlkem),
    ("X25519", ProxyCounter::GroupX25519),
    ("secp256r1", ProxyCounter::GroupP256),
    ("secp384r1", ProxyCounter::GroupP384),
    ("other", ProxyCounter::GroupOther),
];

/// Ciphers, without the key exchange and the hash of their suites.
pub const CIPHERS: [(&str, ProxyCounter); 4] = [
    ("AES-256-GCM", ProxyCounter::CipherAes256),
    ("AES-128-GCM", ProxyCounter::CipherAes128),
    ("ChaCha20-Poly1305", ProxyCounter::CipherChacha),
    ("other", ProxyCounter::CipherOther),
];

/// Versions, with the counters of full and of resumed handshakes.
pub const VERSIONS: [(&str, [ProxyCounter; 2]); 2] = [
    ("TLS 1.3", [ProxyCounter::Tls13Full, ProxyCounter::Tls13Resumed]),
    ("TLS 1.2", [ProxyCounter::Tls12Full, ProxyCounter::Tls12Resumed]),
];

/// Why handshakes are full; the counters add up to [`ProxyCounter::HandshakesFull`].
pub const FULL_REASONS: [(&str, TlsCounter); 11] = [
    ("first visit", TlsCounter::FullFirstVisit),
    ("no ticket", TlsCounter::FullNoTicket),
    ("expired", TlsCounter::FullExpired),
    ("unknown key", TlsCounter::FullUnknownKey),
    ("damaged", TlsCounter::FullDamaged),
    ("other name", TlsCounter::FullOtherName),
    ("other version", TlsCounter::FullOtherVersion),
    ("client auth", TlsCounter::FullClientAuth),
    ("resumption off", TlsCounter::FullResumptionOff),
    ("evicted", TlsCounter::FullEvicted),
    ("unknown", TlsCounter::FullUnknown),
];

/// The reasons of full handshakes that are counted for each client.
pub const CLIENT_FULL_REASONS: [(&str, ClientCounter); 4] = [
    ("no ticket", ClientCounter::FullNoTicket),
    ("expired", ClientCounter::FullExpired),
    ("unknown key", ClientCounter::FullUnknownKey),
    ("mismatch", ClientCounter::FullMismatch),
];

/// The same of one value of usage.
pub const USAGE_FULL_REASONS: [(&str, UsageCounter); 4] = [
    ("no ticket", UsageCounter::FullNoTicket),
    ("expired", UsageCounter::FullExpired),
    ("unknown key", UsageCounter::FullUnknownKey),
    ("mismatch", UsageCounter::FullMismatch),
];

/// Where the wall time of a handshake goes, besides computing: the classes of full and of resumed ones.
pub const WAITS: [(&str, [TlsLatency; 2]); 3] = [
    ("network", [TlsLatency::NetworkFull, TlsLatency::NetworkResumed]),
    ("client", [TlsLatency::ClientFull, TlsLatency::ClientResumed]),
    ("loop delay", [TlsLatency::WorkerFull, TlsLatency::WorkerResumed]),
];

/// Why handshakes fail.
pub const HANDSHAKE_FAILURES: [(&str, ProxyCounter); 6] = [
    ("timeout", ProxyCounter::FailedTimeout),
    ("client left", ProxyCounter::FailedEof),
    ("alert", ProxyCounter::FailedAlert),
    ("not TLS", ProxyCounter::FailedNotTls),
    ("incompatible", ProxyCounter::FailedIncompatible),
    ("other", ProxyCounter::FailedOther),
];

/// Why requests fail: the name in figures and JSON, the label on the screen, and the counter. The counters add up to
/// [`LoadCounter::Failed`].
pub const REQUEST_FAILURES: [(&str, &str, LoadCounter); 8] = [
    ("connect", "no connection", LoadCounter::FailedConnect),
    ("tls", "TLS", LoadCounter::FailedTls),
    ("timeout", "timeout", LoadCounter::FailedTimeout),
    ("reset", "reset", LoadCounter::FailedReset),
    ("short", "cut short", LoadCounter::FailedShort),
    ("body", "wrong body", LoadCounter::FailedBody),
    ("protocol", "not HTTP", LoadCounter::FailedProtocol),
    ("status", "status 4xx 5xx", LoadCounter::FailedStatus),
];

/// Statuses of responses by class.
pub const STATUS_CLASSES: [(&str, HttpCounter); 6] = [
    ("1xx", HttpCounter::Status1xx),
    ("2xx", HttpCounter::Status2xx),
    ("3xx", HttpCounter::Status3xx),
    ("4xx", HttpCounter::Status4xx),
    ("5xx", HttpCounter::Status5xx),
    ("none", HttpCounter::Unanswered),
];

/// Methods of requests.
pub const METHODS: [(&str, HttpCounter); 6] = [
    ("GET", HttpCounter::MethodGet),
    ("HEAD", HttpCounter::MethodHead),
    ("POST", HttpCounter::MethodPost),
    ("PUT", HttpCounter::MethodPut),
    ("DELETE", HttpCounter::MethodDelete),
    ("other", HttpCounter::MethodOther),
];

/// Floods of HTTP/2 frames for which connections are ended.
pub const FLOODS: [(&str, HttpCounter); 4] = [
    ("resets", HttpCounter::FloodResets),
    ("control", HttpCounter::FloodControl),
    ("headers", HttpCounter::FloodHeaders),
    ("empty", HttpCounter::FloodEmpty),
];

/// The latencies of a route, by the names of the classes over all routes.
pub const ROUTE_LATENCIES: [(&str, RouteLatency); 3] = [
    ("upstream", RouteLatency::Upstream),
    ("first_byte", RouteLatency::FirstByte),
    ("request", RouteLatency::Request),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::metrics::{LatencyClass, Metric};

    /// The counters whose field begins like this, less `less`.
    fn fields<M: Metric>(prefix: &str, less: &[&str]) -> usize {
        let names = M::ALL.iter().map(|metric| metric.field().name.trim_start_matches("TLSDASH_"));
        names.filter(|name| name.starts_with(prefix) && !less.contains(name)).count()
    }

    #[test]
    fn no_counter_lacks_a_label() {
        assert_eq!(fields::<ProxyCounter>("GROUP_", &[]), GROUPS.len());
        assert_eq!(fields::<ProxyCounter>("CIPHER_", &[]), CIPHERS.len());
        assert_eq!(
            fields::<ProxyCounter>("HANDSHAKES_FAILED_", &["HANDSHAKES_FAILED_TOTAL"]),
            HANDSHAKE_FAILURES.len()
        );
        assert_eq!(fields::<TlsCounter>("FULL_", &[]), FULL_REASONS.len());
        assert_eq!(fields::<ClientCounter>("CLIENT_FULL_", &[]), CLIENT_FULL_REASONS.len());
        assert_eq!(fields::<UsageCounter>("USAGE_FULL_", &[]), USAGE_FULL_REASONS.len());
        assert_eq!(fields::<HttpCounter>("HTTP_STATUS_", &[]) + 1, STATUS_CLASSES.len());
        assert_eq!(fields::<HttpCounter>("HTTP2_FLOOD_", &[]), FLOODS.len());
        assert_eq!(fields::<HttpCounter>("HTTP_METHOD_", &[]), METHODS.len());
        assert_eq!(fields::<LoadCounter>("LOAD_FAILED_", &["LOAD_FAILED_TOTAL"]), REQUEST_FAILURES.len());
    }

    #[test]
    fn names_and_titles_of_classes_are_unique_on_each_side() {
        let mut seen = HashSet::new();
        for class in LatencyClass::all() {
            let info = class.info();
            let names =
                HashSet::from([info.key.to_owned(), info.title.replace(' ', "_"), info.alias.to_owned()]);
            for name in names.into_iter().filter(|name| !name.is_empty()) {
                assert!(seen.insert((class.side(), name.clone())), "{name}");
            }
        }
    }
}
