//! Which route serves a request, and what names its host.

use records::metrics::{HttpCounter, RouteCounter};

use crate::support::{TestHttpProxy, client_errors};
use crate::upstream::ScriptedUpstream;

#[test]
fn a_request_goes_to_the_upstream_of_its_route_and_is_counted_there() {
    let api = ScriptedUpstream::answering("HTTP/1.1 201 Created\r\ncontent-length: 3\r\n\r\napi");
    let shop = ScriptedUpstream::answering("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nshop");
    let routes = [format!("/api={}", api.upstream), format!("shop.example/={}", shop.upstream)];
    let default = ScriptedUpstream::answering("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\ndefault");
    let mut proxy = TestHttpProxy::start_with(&default.upstream, |_, http| {
        http.routes = routes.iter().map(|route| route.parse().unwrap()).collect();
    });
    for (host, path, expected) in [
        ("localhost", "/", "default"),
        ("localhost", "/api/users?x=1", "api"),
        ("localhost", "/apis", "default"),
        ("shop.example:8443", "/api", "shop"),
    ] {
        let answer = proxy.ask(&format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        assert_eq!(answer.text(), expected, "{host}{path}");
    }
    proxy.expect(HttpCounter::Requests, 4);
    let http = proxy.collect();
    let count = |route: usize, counter| http.routes[route].counters[counter];
    assert_eq!(count(0, RouteCounter::Status2xx), 1);
    assert_eq!(count(1, RouteCounter::Status4xx), 1);
    assert_eq!(count(2, RouteCounter::Requests), 2);
    assert!(api.heads()[0].starts_with("GET /api/users?x=1 HTTP/1.1\r\n"), "the path goes on as received");
    proxy.finish();
}

#[test]
fn requests_without_a_route_or_with_an_ambiguous_path_are_refused() {
    let api = ScriptedUpstream::answering("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\napi");
    let proxy = TestHttpProxy::start_with(&api.upstream, |config, http| {
        http.routes = vec![format!("/api={}", api.upstream).parse().unwrap()];
        config.upstreams.clear();
    });
    assert_eq!(proxy.get("/other").status, 404);
    assert_eq!(proxy.get("/x/../api").status, 400);
    assert_eq!(proxy.get("/%61pi").status, 400);
    assert_eq!(proxy.get("/api").status, 200);
    let total = proxy.finish();
    assert_eq!(client_errors(&total), 3, "they are failures of their client");
    let http = total.http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedNoRoute], 1);
    assert_eq!(http.counters[HttpCounter::FailedAmbiguous], 2);
    assert_eq!(http.counters[HttpCounter::Status4xx], 3);
}

#[test]
fn a_request_names_exactly_one_host_of_this_scheme() {
    let upstream = ScriptedUpstream::answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let proxy = TestHttpProxy::start(&upstream.upstream);
    for (request, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: a@b\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\n\r\n", 200),
        ("GET http://a/ HTTP/1.1\r\nhost: a\r\n\r\n", 421),
        ("GET https://b/x HTTP/1.1\r\nhost: a\r\n\r\n", 200),
        ("OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n", 200),
        ("GET * HTTP/1.1\r\nhost: a\r\n\r\n", 400),
        ("CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n", 405),
    ] {
        assert_eq!(proxy.ask(request).status, expected, "{request:?}");
    }
    let heads = upstream.heads();
    assert!(heads[1].starts_with("GET /x HTTP/1.1\r\n") && heads[1].contains("host: b\r\n"), "{heads:?}");
    assert!(heads[2].starts_with("OPTIONS * HTTP/1.1\r\n"), "{heads:?}");
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedMisdirected], 1);
    assert_eq!(http.counters[HttpCounter::Requests], 9);
}
