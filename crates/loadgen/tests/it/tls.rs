//! Handshakes: the resumption ratio as asked for and as observed at both ends, trust, and source addresses.

use std::io::Write;
use std::net::IpAddr;

use loadgen::{LoadConfig, Template, Trust};
use records::metrics::LoadCounter as C;

use crate::support::{ServerAction, TestServer, TlsVersion, config, run};

#[test]
fn the_resumption_ratio_is_met_exactly_and_the_server_agrees() {
    for version in [TlsVersion::V12, TlsVersion::V13] {
        for (resume, resumed) in [(0, 0), (50, 50), (80, 80), (100, 99)] {
            let server = TestServer::tls(version, |_| ServerAction::ok(10));
            let plan = format!("connections=1,keep-alive=off,requests=100,resume={resume}%");
            let (all, _) = run(config(&server, &plan));
            let counts = &all.counters;
            assert_eq!(counts[C::Ok], 100, "{counts:?}");
            assert_eq!(counts[C::ResumptionsWanted], resume, "{version:?} {resume}%");
            assert_eq!(counts[C::ResumptionsOffered], resumed, "{version:?} {resume}%");
            assert_eq!(counts[C::HandshakesResumed], resumed, "{version:?} {resume}%");
            assert_eq!(counts[C::HandshakesFull], 100 - resumed);
            let seen = server.seen();
            assert_eq!((seen.full, seen.resumed), (100 - resumed, resumed));
        }
    }
}

#[test]
fn many_connections_at_once_find_tickets_too() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(10));
    let (all, _) = run(config(&server, "connections=16,threads=2,keep-alive=2,requests=1000,resume=80%"));
    let seen = server.seen();
    assert_eq!(
        (all.counters[C::HandshakesFull], all.counters[C::HandshakesResumed]),
        (seen.full, seen.resumed)
    );
    let wanted = all.counters[C::ResumptionsWanted];
    assert!(wanted.abs_diff(seen.connections * 4 / 5) <= 2, "{wanted} of {seen:?}");
    // All but those that began before there was any ticket.
    assert!((wanted - 16..=wanted).contains(&seen.resumed), "{wanted} of {seen:?}");
}

#[test]
fn each_source_address_is_a_client_of_its_own() {
    for threads in [1, 2] {
        let server =
            TestServer::tls(TlsVersion::V13, |exchange| ServerAction::ok(exchange.body_bytes as usize));
        let plan = format!(
            "connections=4,keep-alive=2,requests=400,resume=80%,source-addresses=5,threads={threads}"
        );
        let requests = vec![Template::get("/"), Template::post("/echo", 1_000), Template::post("/echo", 50)];
        let (all, load) = run(LoadConfig { requests, ..config(&server, &plan) });
        let sources = load.sources();
        let seen = server.seen_by_address();
        let addresses: Vec<IpAddr> = (2..=6).map(|last| [127, 0, 0, last].into()).collect();
        assert_eq!(sources.iter().map(|source| source.address).collect::<Vec<_>>(), addresses);
        assert_eq!(seen.keys().copied().collect::<Vec<_>>(), addresses);
        for source in &sources {
            let seen = seen[&source.address];
            assert_eq!(source.connections, seen.connections);
            assert_eq!((source.handshakes_full, source.handshakes_resumed), (seen.full, seen.resumed));
            assert_eq!((source.bytes_in, source.bytes_out), (seen.bytes_in, seen.bytes_out));
            assert_eq!(source.requests_ok, seen.requests);
            assert!(seen.resumed > 0 && seen.full > 0, "{seen:?}");
        }
        assert_eq!(sources.iter().map(|source| source.connections).sum::<u64>(), all.counters[C::Opened]);
        assert_eq!(sources.iter().map(|source| source.bytes_out).sum::<u64>(), all.counters[C::BytesOut]);
    }
}

#[test]
fn only_the_right_certificate_is_trusted() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(1));
    let other = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(1));
    let mut ca = tempfile::NamedTempFile::new().unwrap();
    ca.write_all(server.certificate_pem().as_bytes()).unwrap();
    let by_name = format!("https://localhost:{}/", server.address().port());
    let by_address = server.url("/");
    for (url, trust, is_trusted) in [
        (&by_address, Trust::Certificate(server.certificate().unwrap()), true),
        (&by_address, Trust::Certificate(other.certificate().unwrap()), false),
        (&by_name, Trust::CaFile(ca.path().to_owned()), true),
        // The certificate is for localhost, not for an address.
        (&by_address, Trust::CaFile(ca.path().to_owned()), false),
        (&by_name, Trust::Roots, false),
        (&by_address, Trust::Insecure, true),
    ] {
        let target = url.parse().unwrap();
        let (all, _) =
            run(LoadConfig { trust: trust.clone(), target, ..config(&server, "connections=1,requests=2") });
        let expected = if is_trusted { (2, 0) } else { (0, 2) };
        assert_eq!((all.counters[C::Ok], all.counters[C::FailedTls]), expected, "{url} {trust:?}");
        assert_eq!(all.counters[C::HandshakesFailed], expected.1);
    }
}

#[test]
fn a_session_is_not_offered_on_a_full_handshake_in_between() {
    // TLS 1.2 sessions serve again and again, so only the ratio keeps the generator from resuming each time.
    let server = TestServer::tls(TlsVersion::V12, |_| ServerAction::ok(1));
    let (all, _) = run(config(&server, "connections=3,keep-alive=off,requests=90,resume=33.34%"));
    assert_eq!(all.counters[C::HandshakesResumed], server.seen().resumed);
    assert!(all.counters[C::HandshakesResumed] <= 31, "{:?}", all.counters);
    assert!(all.counters[C::HandshakesResumed] >= 27, "{:?}", all.counters);
}
