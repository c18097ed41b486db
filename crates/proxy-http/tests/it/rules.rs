//! Rules for the fields of requests and responses.

use proxy_http::HeaderRules;

use crate::support::{TestHttpProxy, field};
use crate::upstream::ScriptedUpstream;

fn rules(texts: &[&str]) -> HeaderRules {
    HeaderRules::new(texts.iter().map(|text| text.parse().unwrap()).collect()).unwrap()
}

#[test]
fn fields_of_requests_are_set_added_and_removed() {
    let upstream = ScriptedUpstream::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.request_rules = rules(&[
            "set X-Env: prod",
            "add X-Seen: %{client} over %{tls_version} at %{server_name}",
            "remove Accept-Encoding",
        ]);
    });
    let spoofed = "GET / HTTP/1.1\r\nhost: localhost\r\nx-env: a\r\nX-Env: b\r\nx-seen: c\r\naccept-encoding: gzip\r\n\r\n";
    assert_eq!(proxy.ask(spoofed).status, 200);
    let heads = upstream.heads();
    assert_eq!(field(&heads[0], "x-env").as_deref(), Some("prod"), "what the client says is replaced");
    assert_eq!(field(&heads[0], "x-seen").as_deref(), Some("c, 127.0.0.1 over TLSv1.3 at localhost"));
    assert_eq!(field(&heads[0], "accept-encoding"), None);
    assert_eq!(field(&heads[0], "host").as_deref(), Some("localhost"));
    proxy.finish();
}

#[test]
fn fields_of_responses_are_changed_also_of_the_proxys_own() {
    let upstream = ScriptedUpstream::answering(
        "HTTP/1.1 200 OK\r\nserver: secret/1.0\r\nx-env: test\r\ncontent-length: 2\r\n\r\nok",
    );
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.response_rules =
            rules(&["remove Server", "set X-Env: prod", "add Strict-Transport-Security: max-age=63072000"]);
    });
    let response = proxy.get("/");
    let values = ["server", "x-env", "strict-transport-security"].map(|name| response.field(name));
    assert_eq!(values, [None, Some("prod".to_owned()), Some("max-age=63072000".to_owned())]);
    assert_eq!((response.status, response.text()), (200, "ok"));
    let own = proxy.ask("CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(own.status, 405);
    assert_eq!(own.field("x-env").as_deref(), Some("prod"));
    proxy.finish();
}

#[test]
fn the_client_of_a_rule_is_the_one_that_a_trusted_peer_names() {
    let upstream = ScriptedUpstream::answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.trusted_forwarders = "127.0.0.0/8".parse().unwrap();
        http.request_rules = rules(&["set X-Real-IP: %{client}"]);
    });
    proxy.ask("GET / HTTP/1.1\r\nhost: a\r\nx-real-ip: 192.0.2.1\r\nx-forwarded-for: 192.0.2.9\r\n\r\n");
    assert_eq!(field(&upstream.heads()[0], "x-real-ip").as_deref(), Some("192.0.2.9"));
    proxy.finish();
}
