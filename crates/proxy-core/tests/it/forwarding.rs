//! What goes in comes out: echo, resumption, half-close.

use crate::support::{Counted, Served, TLS12, TLS13, echo, end, read_all, serve_echo};
use telemetry::{ProxyCounter, ProxyLatency};

#[test]
fn what_a_client_sends_comes_back_over_either_upstream_and_version() {
    for served in [Served::unix(serve_echo), Served::tcp(serve_echo)] {
        let proxy = Counted::start(served.upstream.clone());
        for version in [&TLS12, &TLS13] {
            let mut tls = proxy.connect(&proxy.client(version));
            for request in [&b"hello"[..], &[7; 100_000]] {
                echo(&mut tls, request);
            }
            end(&mut tls);
            assert_eq!(read_all(&mut tls), (Vec::new(), true));
        }
        let total = proxy.finish();
        let count = |counter| total.counters[counter];
        assert_eq!(count(ProxyCounter::BytesIn), 2 * 100_005);
        assert_eq!(count(ProxyCounter::BytesOut), 2 * 100_005);
        assert_eq!((count(ProxyCounter::Tls12Full), count(ProxyCounter::Tls13Full)), (1, 1));
        assert_eq!(count(ProxyCounter::UpstreamConnects), 2);
        assert_eq!(total.latencies[ProxyLatency::HandshakeFull].count(), 2);
        assert_eq!(total.latencies[ProxyLatency::ComputeFull].count(), 2);
        assert_eq!(total.latencies[ProxyLatency::Lifetime].count(), 2);
        assert!(count(ProxyCounter::WireIn) > 200_010 && count(ProxyCounter::WireOut) > 200_010);
    }
}
