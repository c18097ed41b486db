//! The same with OpenSSL's client, which shares no code with the proxy.

use std::path::Path;

use records::metrics::ProxyCounter;

use crate::outside::{has_echo, s_client};
use crate::support::{TestProxy, TestUpstream, serve_echo};

#[test]
fn openssl_echoes_and_resumes_in_both_versions() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let dir = tempfile::tempdir().unwrap();
    for version in ["-tls1_2", "-tls1_3"] {
        let session = dir.path().join(version);
        let session = session.to_str().unwrap();
        let first = s_client(proxy.addr(), &[version, "-sess_out", session]);
        assert!(has_echo(&first), "{first}");
        assert!(first.contains("New, TLS"), "{first}");
        assert!(Path::new(session).exists(), "no ticket came: {first}");
        let second = s_client(proxy.addr(), &[version, "-sess_in", session]);
        assert!(has_echo(&second), "{second}");
        assert!(second.contains("Reused, TLS"), "{second}");
    }
    let total = proxy.finish();
    let count = |counter| total.counters[counter];
    assert_eq!((count(ProxyCounter::Tls12Full), count(ProxyCounter::Tls12Resumed)), (1, 1));
    assert_eq!((count(ProxyCounter::Tls13Full), count(ProxyCounter::Tls13Resumed)), (1, 1));
    assert_eq!(count(ProxyCounter::BytesIn), 4 * 19);
    assert_eq!(count(ProxyCounter::BytesOut), 4 * 19);
}

#[test]
fn versions_that_are_obsolete_are_refused() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    for version in ["-tls1", "-tls1_1"] {
        let output = s_client(proxy.addr(), &[version, "-cipher", "ALL:@SECLEVEL=0"]);
        assert!(!has_echo(&output), "{output}");
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::FailedIncompatible], 2);
}
