//! HTTP/1.1 on both sides: fields, framing, interim responses, trailers.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proxy_core::{Authorities, ClientAuth};
use records::ids::ClientId;
use records::metrics::{HttpCounter, HttpLatency, ProxyCounter};
use records::setting::Value;
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::support::{Http1Client, TestHttpProxy, field};
use crate::upstream::{HELLO, ScriptedConn, ScriptedUpstream};

fn answer_hello(mut peer: ScriptedConn) {
    while peer.head().is_some() {
        peer.send(HELLO);
    }
}

#[test]
fn fields_of_one_connection_stop_at_the_proxy() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            peer.send(
                "HTTP/1.1 200 OK\r\nconnection: keep-alive, x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\n\
                 server: app\r\ndate: yesterday\r\nx-end: 2\r\ncontent-length: 0\r\n\r\n",
            );
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let answer = proxy.ask(
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: x-private, host\r\nx-private: 1\r\nkeep-alive: 1\r\n\
         proxy-connection: x\r\nte: gzip\r\nexpect: 100-continue\r\nx-public: 2\r\nupgrade: h2c\r\n\r\n",
    );
    let head = &upstream.heads()[0];
    for name in ["x-private", "keep-alive", "proxy-connection", "te", "upgrade", "connection", "expect"] {
        assert_eq!(field(head, name), None, "{head}");
    }
    assert_eq!(field(head, "x-public").as_deref(), Some("2"));
    assert_eq!(field(head, "host").as_deref(), Some("a"));
    for name in ["x-hop", "keep-alive", "connection"] {
        assert_eq!(answer.field(name), None, "{}", answer.head);
    }
    assert_eq!(answer.field("x-end").as_deref(), Some("2"));
    assert_eq!(answer.field("server").as_deref(), Some("app"), "it stays as it is");
    assert_eq!(answer.field("date").as_deref(), Some("yesterday"), "it stays as it is");
    proxy.finish();
}

#[test]
fn forwarding_fields_of_untrusted_clients_are_replaced() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| http.sends_tls_fields = true);
    proxy.ask(
        "GET / HTTP/1.1\r\nhost: a:1\r\nx-forwarded-for: 9.9.9.9\r\nx-forwarded-proto: http\r\n\
         x-forwarded-host: evil\r\nx-forwarded-prefix: /evil\r\nforwarded: for=9.9.9.9\r\nx-tls-client-name: root\r\n\
         X-TLS-Version: SSLv2\r\n\r\n",
    );
    let head = &upstream.heads()[0];
    let of = |name| field(head, name);
    assert_eq!(of("x-forwarded-for").as_deref(), Some("127.0.0.1"));
    assert_eq!(of("x-forwarded-proto").as_deref(), Some("https"));
    assert_eq!(of("x-forwarded-host").as_deref(), Some("a:1"));
    assert_eq!((of("forwarded"), of("x-tls-client-name"), of("x-forwarded-prefix")), (None, None, None));
    assert_eq!(of("x-tls-version").as_deref(), Some("TLSv1.3"));
    assert!(of("x-tls-cipher").unwrap().starts_with("TLS_"));
    assert_eq!(of("x-tls-server-name").as_deref(), Some("localhost"));
    proxy.finish();
}

#[test]
fn where_names_have_rules_a_client_may_ask_for_the_host_of_its_name_only() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let (made, folder) = (rcgen::generate_simple_self_signed([]).unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("client.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |config, _| {
        config.tls.client_ca = Some(Authorities::load(&file).unwrap());
        let rules = Value::Text("off,admin.test=required".to_owned());
        config.tls.settings.set("client-auth", &rules).unwrap();
    });
    let statuses = ["localhost", "admin.test", "ADMIN.test:8443", "other.test", "localhost"].map(|host| {
        let mut client = proxy.connect();
        client.send(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        client.answer().status
    });
    assert_eq!(statuses, [200, 421, 421, 421, 200]);
    proxy.finish();
}

#[test]
fn upstreams_get_the_verified_certificate_and_none_that_a_client_claims() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let (made, folder) = (rcgen::generate_simple_self_signed([]).unwrap(), tempfile::tempdir().unwrap());
    let file = folder.path().join("client.pem");
    std::fs::write(&file, made.cert.pem()).unwrap();
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |config, http| {
        http.sends_tls_fields = true;
        config.tls.client_ca = Some(Authorities::load(&file).unwrap());
        config.tls.settings.client_auth = ClientAuth::Optional.into();
    });
    let anonymous = proxy.client_config(&["http/1.1"]);
    let mut own = ClientConfig::clone(&anonymous);
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let key = any_supported_type(&key).unwrap();
    let own_cert = SingleCertAndKey::from(CertifiedKey::new(vec![made.cert.der().clone()], key));
    own.client_auth_cert_resolver = Arc::new(own_cert);
    let own = Arc::new(own);
    let statuses: Vec<u16> =
        [(&own, "localhost"), (&own, "localhost"), (&own, "other.test"), (&anonymous, "localhost")]
            .map(|(config, host)| {
                let mut client = proxy.connect_as(Arc::clone(config));
                client
                    .send(format!("GET / HTTP/1.1\r\nhost: {host}\r\nX-TLS-Client-Cert: :Zm9yZ2Vk:\r\n\r\n"));
                client.answer().status
            })
            .to_vec();
    assert_eq!(statuses, [200, 200, 421, 200], "a certificate is for the name that was asked for in TLS");
    let claimed: Vec<_> = upstream.heads().iter().map(|head| field(head, "x-tls-client-cert")).collect();
    let verified = Some(format!(":{}:", STANDARD.encode(made.cert.der())));
    assert_eq!(claimed, [verified.clone(), verified, None]);
    let total = proxy.finish();
    assert!(total.counters[ProxyCounter::HandshakesResumed] > 0);
}

#[test]
fn forwarding_fields_of_trusted_peers_are_extended() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.trusted_forwarders = "127.0.0.0/8,10.0.0.0/8".parse().unwrap();
    });
    proxy.ask(
        "GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 6.6.6.6, 9.9.9.9, 10.0.0.1\r\n\
         x-forwarded-proto: http\r\nx-forwarded-host: shop\r\n\r\n",
    );
    proxy.ask("GET / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: 6.6.6.6\r\nx-forwarded-for: 9.9.9.9\r\n\r\n");
    // What stops at the proxy names no client.
    proxy.ask("GET / HTTP/1.1\r\nhost: a\r\nconnection: x-forwarded-for\r\nx-forwarded-for: 6.6.6.6\r\n\r\n");
    let heads = upstream.heads();
    let head = &heads[0];
    assert_eq!(field(head, "x-forwarded-proto").as_deref(), Some("http"));
    assert_eq!(field(head, "x-forwarded-host").as_deref(), Some("shop"));
    // One line: servers read the first, or the last.
    for (head, expected) in heads.iter().zip([
        "x-forwarded-for: 6.6.6.6, 9.9.9.9, 10.0.0.1, 127.0.0.1",
        "x-forwarded-for: 6.6.6.6, 9.9.9.9, 127.0.0.1",
        "x-forwarded-for: 127.0.0.1",
    ]) {
        let lines: Vec<_> = head.lines().filter(|line| line.starts_with("x-forwarded-for")).collect();
        assert_eq!(lines, [expected]);
    }
    let total = proxy.finish();
    assert!(matches!(total.clients[0].client, ClientId::Addr(_)));
}

#[test]
fn content_is_streamed_both_ways_however_it_is_framed() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            let content = if let Some(length) = field(&head, "content-length") {
                peer.content(length.parse().unwrap()).unwrap()
            } else {
                assert_eq!(field(&head, "transfer-encoding").as_deref(), Some("chunked"));
                assert!(peer.read_until(|bytes| bytes.ends_with(b"0\r\n\r\n")));
                std::mem::take(&mut peer.received)
            };
            let n = content.len();
            peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
            for part in content.chunks(n.div_ceil(3).max(1)) {
                peer.send(format!("{:x};x=y\r\n", part.len()));
                peer.send(part);
                peer.send("\r\n");
            }
            peer.send("0\r\n\r\n");
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    let large: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    for content in [&b"x"[..], &large] {
        client.send(format!("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", content.len()));
        client.send(content);
        assert!(client.answer().body == content, "{} bytes", content.len());
    }
    client.send("PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(client.answer().text(), "3\r\nabc\r\n0\r\n\r\n");
    let http = proxy.finish().http.unwrap();
    let bytes = large.len() as u64 + 1;
    assert_eq!(http.counters[HttpCounter::BodyIn], bytes + 3);
    assert_eq!(http.counters[HttpCounter::BodyOut], bytes + 13);
}

#[test]
fn head_and_statuses_without_content_keep_their_fields() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            peer.send(if head.contains("/304") {
                "HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n"
            } else if head.contains("/204") {
                "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n"
            } else {
                "HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n"
            });
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    for (method, path, status, length) in [
        ("HEAD", "/", 200, Some("1234")),
        ("HEAD", "/204", 204, None),
        ("GET", "/304", 304, None),
        ("GET", "/204", 204, None),
    ] {
        client.send(format!("{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
        let answer = client.answer_to(method);
        assert_eq!((answer.status, answer.field("content-length").as_deref()), (status, length), "{path}");
    }
    assert_eq!(upstream.connections(), 1);
    proxy.finish();
}

#[test]
fn a_status_without_a_name_has_no_phrase() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 299 Fine\r\ncontent-length: 0\r\n\r\n");
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(client.head().starts_with("http/1.1 299 \r\n"));
    proxy.finish();
}

#[test]
fn interim_responses_are_dropped_and_the_final_one_comes_through() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n");
            peer.send(HELLO);
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let answer = proxy.get("/");
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    proxy.finish();
}

#[test]
fn a_client_that_waits_for_100_is_told_to_continue() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() && peer.content(4).is_some() {
            peer.send(HELLO);
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n");
    assert!(client.head().starts_with("http/1.1 100"));
    client.send("body");
    assert_eq!(client.answer().text(), "hello");
    proxy.finish();
}

#[test]
fn clients_of_http_1_0_get_an_answer_that_ends_with_the_connection() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.0\r\n\r\n");
    let answer = client.answer();
    assert!(answer.head.starts_with("http/1.0 200"), "{}", answer.head);
    assert_eq!((answer.text(), answer.field("transfer-encoding")), ("hello", None));
    proxy.finish();
}

#[test]
fn only_a_response_with_a_length_keeps_a_connection_of_http_1_0() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            let is_chunked = head.contains("/chunked");
            peer.send(if is_chunked {
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            } else {
                HELLO
            });
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    for (path, connection) in [("/", "keep-alive"), ("/chunked", "close")] {
        client.send(format!("GET {path} HTTP/1.0\r\nconnection: keep-alive\r\n\r\n"));
        let answer = client.answer();
        assert_eq!((answer.text(), answer.field("connection").as_deref()), ("hello", Some(connection)));
    }
    assert_eq!(client.read_until(|_| false), Err(false));
    proxy.finish();
}

#[test]
fn a_request_of_http_1_0_without_a_host_gets_one() {
    let (unix, tcp) = (ScriptedUpstream::answering(HELLO), ScriptedUpstream::tcp(answer_hello));
    let address = tcp.upstream.to_string();
    let with_name = |proxy: &TestHttpProxy| proxy.client_config(&["http/1.1"]);
    let without_name = |proxy: &TestHttpProxy| {
        let mut config = ClientConfig::clone(&with_name(proxy));
        config.enable_sni = false;
        Arc::new(config)
    };
    for (upstream, host) in [(&unix, "localhost"), (&tcp, &address)] {
        let proxy = TestHttpProxy::start(&upstream.upstream);
        for config in [with_name(&proxy), without_name(&proxy)] {
            let mut client = proxy.connect_as(config);
            client.send("GET / HTTP/1.0\r\n\r\n");
            assert_eq!(client.answer().status, 200);
        }
        let heads = upstream.heads();
        let hosts: Vec<_> = heads.iter().map(|head| field(head, "host").unwrap()).collect();
        assert_eq!(hosts, ["localhost", host]);
        assert!(heads.iter().all(|head| field(head, "x-forwarded-host").is_none()), "{heads:?}");
        proxy.finish();
    }
}

#[test]
fn an_upstream_of_http_1_0_ends_its_answer_with_the_connection() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        if peer.head().is_some() {
            peer.send("HTTP/1.0 200 OK\r\n\r\nhello");
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(client.answer().text(), "hello");
    }
    proxy.finish();
}

#[test]
fn trailers_go_both_ways() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            assert!(peer.read_until(|bytes| bytes.ends_with(b"\r\n\r\n")));
            assert_eq!(std::mem::take(&mut peer.received), b"1\r\nx\r\n0\r\nx-sum: 7\r\n\r\n");
            peer.send(
                "HTTP/1.1 200 OK\r\ntrailer: x-check\r\ntransfer-encoding: chunked\r\n\r\n\
                 5\r\nhello\r\n0\r\nx-check: 8\r\ncontent-length: 1\r\n\r\n",
            );
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nhost: a\r\nte: trailers\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send("1\r\nx\r\n0\r\nx-sum: 7\r\ncontent-length: 9\r\n\r\n");
    assert_eq!(client.answer().text(), "hello");
    client.read_until(|bytes| bytes.ends_with(b"\r\n\r\n")).unwrap();
    assert_eq!(client.received.to_ascii_lowercase(), b"x-check: 8\r\n\r\n");
    proxy.finish();
}

#[test]
fn pipelined_requests_are_answered_in_order_and_timed_one_by_one() {
    const N: u64 = 50;
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            std::thread::sleep(std::time::Duration::from_millis(4));
            let path = head.split(' ').nth(1).unwrap().to_owned();
            peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{path}", path.len()));
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    let began_at = std::time::Instant::now();
    let ask = |client: &mut Http1Client, n| client.send(format!("GET /{n} HTTP/1.1\r\nhost: a\r\n\r\n"));
    ask(&mut client, 0);
    for n in 0..N {
        // While the one before is in work.
        if n + 1 < N {
            ask(&mut client, n + 1);
        }
        assert_eq!(client.answer().text(), format!("/{n}"));
    }
    let all = began_at.elapsed();
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Requests], N);
    // Each begins where the one before has ended, however they came.
    let sum = std::time::Duration::from_nanos(http.latency(HttpLatency::Request).sum_ns());
    assert!((all / 2..all * 3 / 2).contains(&sum), "{sum:?} of {all:?}");
}
