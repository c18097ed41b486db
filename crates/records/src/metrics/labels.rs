//! Counters and latencies by what they are of: lists with labels that screen, reports and scrapers share.

use super::{
    ClientCounter, HttpCounter, LoadCounter, Metric, ProxyCounter, TlsCounter, TlsLatency, UsageCounter,
};

macro_rules! labelled {
    ($($(#[$doc:meta])* $list:ident: $family:ident of $metric:literal;)*) => {$(
        $(#[$doc])*
        pub fn $list() -> impl Iterator<Item = (&'static str, $family)> {
            $family::labelled($metric)
        }
    )*};
}
labelled! {
    /// Key exchange groups, by their IANA names.
    groups: ProxyCounter of "handshakes_by_group";
    /// Ciphers, without the key exchange and the hash of their suites.
    ciphers: ProxyCounter of "handshakes_by_cipher";
    /// Why handshakes fail.
    handshake_failures: ProxyCounter of "handshakes_failed";
    /// Which end closed a connection first, and how.
    first_closes: ProxyCounter of "connections_closed_first";
    /// Which end stopped reading.
    full_windows: ProxyCounter of "windows_full";
    /// Why handshakes are full; the counters add up to [`ProxyCounter::HandshakesFull`].
    full_reasons: TlsCounter of "handshakes_full";
    /// The reasons of full handshakes that are counted for each client.
    client_full_reasons: ClientCounter of "client_handshakes_full";
    /// The reasons of full handshakes that are counted for each value of usage. Scrapers do not get them.
    usage_full_reasons: UsageCounter of "";
    /// Why requests of the load fail: the names in figures and JSON. The counters add up to [`LoadCounter::Failed`].
    request_failures: LoadCounter of "load_requests_failed";
    /// Statuses of responses by class.
    status_classes: HttpCounter of "http_responses";
    /// Methods of requests.
    methods: HttpCounter of "http_methods";
    /// Floods of HTTP/2 frames for which connections are ended.
    floods: HttpCounter of "http2_floods";
}

/// Versions, with the counters of full and of resumed handshakes.
pub fn versions() -> Vec<(&'static str, [ProxyCounter; 2])> {
    ProxyCounter::by_kind("handshakes")
}

/// Where the wall time of a handshake goes, besides computing: the classes of full and of resumed ones.
pub fn waits() -> Vec<(&'static str, [TlsLatency; 2])> {
    TlsLatency::by_kind("handshake_wait_seconds")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::metrics::LatencyClass;

    /// The counters whose field begins like this, less `less`.
    fn fields<M: Metric>(prefix: &str, less: &[&str]) -> usize {
        let names = M::ALL.iter().map(|metric| metric.field().name.trim_start_matches("TLSDASH_"));
        names.filter(|name| name.starts_with(prefix) && !less.contains(name)).count()
    }

    #[test]
    fn no_counter_lacks_a_label() {
        assert_eq!(fields::<ProxyCounter>("GROUP_", &[]), groups().count());
        assert_eq!(fields::<ProxyCounter>("CIPHER_", &[]), ciphers().count());
        assert_eq!(
            fields::<ProxyCounter>("HANDSHAKES_FAILED_", &["HANDSHAKES_FAILED_TOTAL"]),
            handshake_failures().count()
        );
        assert_eq!(fields::<TlsCounter>("FULL_", &[]), full_reasons().count());
        assert_eq!(fields::<ClientCounter>("CLIENT_FULL_", &[]), client_full_reasons().count());
        assert_eq!(fields::<UsageCounter>("USAGE_FULL_", &[]), usage_full_reasons().count());
        assert_eq!(fields::<HttpCounter>("HTTP_STATUS_", &[]) + 1, status_classes().count());
        assert_eq!(fields::<HttpCounter>("HTTP2_FLOOD_", &[]), floods().count());
        assert_eq!(fields::<HttpCounter>("HTTP_METHOD_", &[]), methods().count());
        assert_eq!(fields::<LoadCounter>("LOAD_FAILED_", &["LOAD_FAILED_TOTAL"]), request_failures().count());
        assert_eq!((versions().len(), waits().len()), (2, 4));
    }

    #[test]
    fn names_and_titles_of_classes_are_unique_on_each_side() {
        let mut seen = HashSet::new();
        for class in LatencyClass::all() {
            let names = class.names();
            let names = HashSet::from([
                names.figure.to_owned(),
                names.title.replace(' ', "_"),
                names.alias.to_owned(),
            ]);
            for name in names.into_iter().filter(|name| !name.is_empty()) {
                assert!(seen.insert((class.side(), name.clone())), "{name}");
            }
        }
    }
}
