//! Several upstreams of a route: the one with the fewest requests, and what happens when one is down.

use records::delta::NamedDelta as _;
use records::kinds::UpstreamState;
use records::metrics::{HttpCounter, ProxyCounter, UpstreamCounter, UpstreamLatency};

use crate::support::TestHttpProxy;
use crate::upstream::{HELLO, ScriptedUpstream, nowhere};

#[test]
fn the_upstream_with_the_fewest_requests_is_chosen() {
    // The first never answers, so that each request to it stays.
    let deaf = ScriptedUpstream::unix(|mut peer| peer.wait_for_end());
    let quick = ScriptedUpstream::answering(HELLO);
    let proxy =
        TestHttpProxy::start_with(&deaf.upstream, |config, _| config.upstreams.push(quick.upstream.clone()));
    let mut waiting = proxy.connect();
    waiting.send("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    crate::support::eventually("the deaf one has a request", || {
        deaf.connections() + quick.connections() == 1
    });
    if deaf.connections() == 0 {
        waiting.answer();
        waiting.send("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
        crate::support::eventually("the deaf one has a request", || deaf.connections() == 1);
    }
    for _ in 0..5 {
        assert_eq!(proxy.get("/").text(), "hello");
    }
    assert_eq!(deaf.connections(), 1);
    drop(waiting);
    proxy.finish();
}

#[test]
fn requests_go_to_another_upstream_where_one_cannot_be_reached() {
    let good = ScriptedUpstream::answering(HELLO);
    let proxy =
        TestHttpProxy::start_with(&nowhere(), |config, _| config.upstreams.push(good.upstream.clone()));
    for _ in 0..6 {
        assert_eq!(proxy.get("/").status, 200);
    }
    let delta = proxy.finish();
    assert_eq!(delta.http.unwrap().counters[HttpCounter::FailedConnect], 0);
    let [gone, there] = delta.upstreams.all() else { panic!("two upstreams") };
    assert_eq!(gone.status.as_ref().unwrap().state, UpstreamState::Down);
    assert_eq!(
        gone.counters.sum(&UpstreamCounter::FAILED),
        delta.counters[ProxyCounter::UpstreamConnectsFailed]
    );
    assert_eq!(gone.counters[UpstreamCounter::Exchanges], 0);
    assert_eq!(there.counters[UpstreamCounter::Exchanges], 6);
    assert_eq!(there.counters[UpstreamCounter::Connections], delta.counters[ProxyCounter::UpstreamConnects]);
    assert_eq!(there.counters[UpstreamCounter::BytesOut], 6 * 5);
    assert_eq!(there.latency(UpstreamLatency::FirstByte).count(), 6);
    assert_eq!((there.open_change, there.idle_change), (0, 0), "all connections are closed at the end");
}

#[test]
fn a_route_without_a_reachable_upstream_answers_502() {
    let proxy = TestHttpProxy::start(&nowhere());
    let answer = proxy.get("/");
    assert_eq!(answer.status, 502);
    assert_eq!(answer.text(), "the upstream cannot be reached\n");
    let delta = proxy.finish();
    assert_eq!(delta.counters[ProxyCounter::UpstreamConnectsFailed], 1);
    assert_eq!(delta.counters[ProxyCounter::UpstreamConnects], 0);
    let http = delta.http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedConnect], 1);
    assert_eq!(http.counters[HttpCounter::Status5xx], 1);
}

#[test]
fn requests_with_the_same_field_go_to_the_same_upstream() {
    let upstreams = [(); 3].map(|()| ScriptedUpstream::answering(HELLO));
    let proxy = TestHttpProxy::start_with(&upstreams[0].upstream, |config, _| {
        config.upstreams = upstreams.iter().map(|one| one.upstream.clone()).collect();
        config.balance = "hash-header:X-User".parse().unwrap();
    });
    let heads = || upstreams.each_ref().map(|one| one.heads().len());
    let mut has_served = [false; 3];
    for user in 0..12 {
        let before = heads();
        for _ in 0..3 {
            let mut client = proxy.connect();
            client.send(format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-user: {user}\r\n\r\n"));
            assert_eq!(client.answer().status, 200);
        }
        let served: Vec<_> = (0..3).filter(|&index| heads()[index] > before[index]).collect();
        assert_eq!(served.len(), 1, "{user}");
        has_served[served[0]] = true;
    }
    assert!(has_served.iter().filter(|&&one| one).count() > 1, "not all to one");
    // Without the field the fewest requests decide.
    assert_eq!(proxy.get("/").status, 200);
    proxy.finish();
}
