//! 0-RTT: taken, rejected, not possible, and what each of them counts as.

use loadgen::{Load, LoadConfig, Protocol, Template, Trust};
use records::metrics::{LoadCounter as C, LoadLatency as L};

use crate::support::{ServerAction, TestServer, TlsVersion, config, plan, run};

const PLAN: &str = "connections=1,keep-alive=2,requests=100,resume=80%,early-data=on";

fn counts(all: &records::delta::LoadDelta) -> (u64, u64, u64) {
    (all.counters[C::EarlyWanted], all.counters[C::EarlyOffered], all.counters[C::EarlyAccepted])
}

#[test]
fn accepted_early_data_has_its_own_latency_class() {
    let server = TestServer::early(16_384, true, |exchange| ServerAction::ok(exchange.body_bytes as usize));
    let requests = vec![Template::post("/echo", 1_000)];
    let (all, _) = run(LoadConfig { requests, ..config(&server, PLAN) });
    assert_eq!(all.counters[C::Ok], 100, "{:?}", all.counters);
    assert_eq!(counts(&all), (40, 40, 40));
    let seen = server.seen();
    assert_eq!((seen.early, seen.resumed, seen.full), (40, 40, 10));
    assert_eq!((all.counters[C::HandshakesResumed], all.counters[C::HandshakesFull]), (40, 10));
    assert_eq!((seen.bytes_in, seen.requests), (all.counters[C::BytesIn], 100));
    assert_eq!(all.counters[C::BytesOut], seen.bytes_out);
    let classes = [L::HandshakeEarly, L::HandshakeResumed, L::HandshakeFull];
    assert_eq!(classes.map(|class| all.latencies[class].count()), [40, 0, 10]);
    let totals = [L::TotalEarly, L::TotalResumed, L::TotalFull, L::TotalKept, L::TotalPlain, L::Total];
    assert_eq!(totals.map(|class| all.latencies[class].count()), [40, 0, 10, 50, 0, 100]);
}

#[test]
fn early_data_that_is_rejected_is_sent_again_and_counted() {
    let server = TestServer::early(16_384, false, |_| ServerAction::ok(10));
    let (all, _) = run(config(&server, PLAN));
    assert_eq!(all.counters[C::Ok], 100, "{:?}", all.counters);
    let seen = server.seen();
    let (wanted, offered, accepted) = counts(&all);
    assert_eq!((wanted, offered, accepted), (40, 40, seen.early));
    // Its own tickets are taken by every other connection only.
    assert!(accepted < 20, "{:?}", all.counters);
    assert_eq!(all.counters[C::HandshakesResumed], 40);
    assert_eq!((seen.bytes_in, seen.requests), (all.counters[C::BytesIn], 100));
    assert_eq!(all.latencies[L::HandshakeEarly].count(), accepted);
    assert_eq!(all.latencies[L::TotalResumed].count(), 40 - accepted);
}

#[test]
fn early_data_beyond_the_tickets_limit_is_not_offered() {
    // Tickets without early data, and tickets that allow less than a request.
    for server in [
        TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(10)),
        TestServer::early(10, true, |_| ServerAction::ok(10)),
    ] {
        let (all, _) = run(config(&server, PLAN));
        assert_eq!(all.counters[C::Ok], 100, "{:?}", all.counters);
        assert_eq!(counts(&all), (40, 0, 0));
        assert_eq!((server.seen().early, server.seen().resumed), (0, 40));
        assert_eq!(all.latencies[L::HandshakeResumed].count(), 40);
    }
}

#[test]
fn a_large_request_goes_early_too_and_so_may_its_answer_come() {
    // Answers of many records, so that they come in several reads.
    let server = TestServer::early(65_536, true, |_| ServerAction::ok(200_000));
    let plan = "connections=4,threads=2,keep-alive=off,requests=200,resume=100%,early-data=on";
    let requests = vec![Template::post("/echo", 40_000)];
    let (all, _) = run(LoadConfig { requests, ..config(&server, plan) });
    assert_eq!(all.counters[C::Ok], 200, "{:?}", all.counters);
    let (seen, (_, offered, accepted)) = (server.seen(), counts(&all));
    assert_eq!((accepted, seen.early), (offered, offered));
    assert!(offered >= 190, "all but the first of each client: {offered}");
    assert_eq!((all.counters[C::BytesIn], all.counters[C::BytesOut]), (seen.bytes_in, seen.bytes_out));
}

#[test]
fn a_server_that_fails_during_early_data_fails_the_request_once() {
    let server = TestServer::early(16_384, true, |exchange| match exchange.nth {
        0 | 1 => ServerAction::ok(1),
        _ => ServerAction::AnswerAndReset(Vec::new()),
    });
    let (all, _) = run(config(&server, "connections=1,keep-alive=off,requests=10,resume=100%,early-data=on"));
    assert_eq!(all.counters[C::Ok], 2, "{:?}", all.counters);
    assert_eq!((all.counters[C::Failed], all.counters[C::Retried]), (8, 0));
}

#[test]
fn impossible_early_data_is_refused_before_anything_starts() {
    let refused = |url: &str, change: fn(&mut LoadConfig)| {
        let plan = plan("connections=1,resume=100%,early-data=on");
        let mut config = LoadConfig::new(url.parse().unwrap(), plan, Trust::Insecure);
        change(&mut config);
        Load::start(config).unwrap_err().to_string()
    };
    assert!(refused("http://127.0.0.1:1/", |_| {}).contains("it goes with https:// or tls:// only"));
    let http2 =
        refused("https://127.0.0.1:1/", |config| config.plan.protocol = Protocol::Http2 { streams: 1 });
    assert!(http2.contains("it goes with HTTP/1.1 only"), "{http2}");
    let old = refused("https://127.0.0.1:1/", |config| config.tls.version = Some(TlsVersion::V12));
    assert!(old.contains("TLS 1.2 has none"), "{old}");
}
