//! Upstreams that speak TLS: bytes, verification, resumption, and their many ways to fail.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use proxy_core::{Proxy, ProxyConfig, UpstreamTls};
use records::delta::NamedDelta as _;
use records::kinds::ConnectionOutcome;
use records::metrics::{ProxyCounter, UpstreamCounter, UpstreamLatency};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    HandshakeKind, RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion,
};

use crate::pki::{P256, Pki};
use crate::support::{
    PATIENCE, TLS12, TLS13, TestProxy, TestStream, TestUpstream, echo, end, eventually, pattern, read_all,
    serve_echo,
};

/// What an upstream learns of a connection.
#[derive(Debug, PartialEq)]
pub(crate) struct Seen {
    is_resumed: bool,
    name: Option<String>,
    has_client_certificate: bool,
}

/// How an upstream ends a connection whose client has ended.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Ending {
    Clean,
    /// Without `close_notify`.
    Truncated,
}

pub(crate) fn server(
    pki: &Pki,
    file: &str,
    versions: &[&'static SupportedProtocolVersion],
    asks: bool,
) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_protocol_versions(versions).unwrap();
    let builder = if asks {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(pki.path("ca.pem")).unwrap()).unwrap();
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        builder.with_client_cert_verifier(verifier.unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let chain = vec![CertificateDer::from_pem_file(pki.path(&format!("{file}.pem"))).unwrap()];
    let key = PrivateKeyDer::from_pem_file(pki.path(&format!("{file}.key"))).unwrap();
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

fn shake_hands<S: Read + Write>(
    mut stream: S,
    config: Arc<ServerConfig>,
) -> std::io::Result<StreamOwned<ServerConnection, S>> {
    let mut connection = ServerConnection::new(config).unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(StreamOwned::new(connection, stream))
}

fn serve(stream: impl TestStream, config: Arc<ServerConfig>, ending: Ending, seen: &Sender<Seen>) {
    let Ok(mut tls) = shake_hands(stream, config) else { return };
    let _ = seen.send(Seen {
        is_resumed: tls.conn.handshake_kind() == Some(HandshakeKind::Resumed),
        name: tls.conn.server_name().map(ToOwned::to_owned),
        has_client_certificate: tls.conn.peer_certificates().is_some(),
    });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n) = tls.read(&mut buffer) {
        if n == 0 {
            if ending == Ending::Clean {
                tls.conn.send_close_notify();
                let _ = tls.flush();
            }
            return tls.sock.end();
        }
        if tls.write_all(&buffer[..n]).is_err() {
            return;
        }
    }
}

/// An upstream on TCP that echoes, as `localhost`.
pub(crate) fn tcp_upstream(config: Arc<ServerConfig>, ending: Ending) -> (String, Receiver<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, seen) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (config, sender) = (Arc::clone(&config), sender.clone());
            thread::spawn(move || serve(stream.unwrap(), config, ending, &sender));
        }
    });
    (format!("tls://localhost:{port}"), seen)
}

fn start(pki: &Pki, upstream: &str, change: impl FnOnce(&mut ProxyConfig)) -> TestProxy {
    TestProxy::start_with(&upstream.parse().unwrap(), |config| {
        config.tls.upstream = UpstreamTls { ca: Some(pki.client_ca()), ..UpstreamTls::default() };
        change(config);
    })
}

fn notices(proxy: &Proxy) -> String {
    proxy.take_notices().into_iter().map(|notice| notice.text + "\n").collect()
}

#[test]
fn bytes_pass_unchanged_and_both_ends_are_passed_on() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    for version in [&TLS12, &TLS13] {
        let (upstream, seen) = tcp_upstream(server(&pki, "app", &[version], false), Ending::Clean);
        let mut proxy = start(&pki, &upstream, |_| {});
        let config = proxy.client(&TLS13);
        let sent = pattern(3 << 20);
        let mut tls = proxy.connect(&config);
        // The echo comes while the client still sends.
        tls.conn.set_buffer_limit(None);
        tls.conn.writer().write_all(&sent).unwrap();
        let mut received = vec![0; sent.len()];
        tls.read_exact(&mut received).unwrap();
        assert!(received == sent, "{version:?}");
        end(&mut tls);
        assert_eq!(read_all(&mut tls), (Vec::new(), true));
        let first = seen.recv_timeout(PATIENCE).unwrap();
        assert_eq!((first.is_resumed, first.name.as_deref()), (false, Some("localhost")));
        proxy.expect(ProxyCounter::BytesIn, sent.len() as u64);
        proxy.expect(ProxyCounter::UpstreamConnects, 1);
        proxy.finish();
    }
}

#[test]
fn later_connections_resume_the_sessions_of_earlier_ones() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    for version in [&TLS12, &TLS13] {
        let (upstream, seen) = tcp_upstream(server(&pki, "app", &[version], false), Ending::Clean);
        let one_worker = |config: &mut ProxyConfig| config.workers = 1.try_into().unwrap();
        let proxy = start(&pki, &upstream, one_worker);
        let config = proxy.client(&TLS13);
        let mut resumed = Vec::new();
        for _ in 0..3 {
            let mut tls = proxy.connect(&config);
            echo(&mut tls, b"hello");
            end(&mut tls);
            assert_eq!(read_all(&mut tls), (Vec::new(), true));
            resumed.push(seen.recv_timeout(PATIENCE).unwrap().is_resumed);
        }
        assert_eq!(resumed, [false, true, true], "{version:?}");
        let total = proxy.finish();
        let upstream = &total.upstreams.all()[0];
        let tls12 = if *version == TLS12 { 3 } else { 0 };
        for (counter, expected) in [
            (UpstreamCounter::Connections, 3),
            (UpstreamCounter::TlsFull, 1),
            (UpstreamCounter::TlsResumed, 2),
            (UpstreamCounter::TlsRefused, 0),
            (UpstreamCounter::Tls12, tls12),
        ] {
            assert_eq!(upstream.counters[counter], expected, "{counter:?} {version:?}");
        }
        let count = |class| upstream.latency(class).count();
        assert_eq!((count(UpstreamLatency::TlsFull), count(UpstreamLatency::TlsResumed)), (1, 2));
        assert_eq!(count(UpstreamLatency::TlsCompute), 3);
    }
}

#[test]
fn an_upstream_on_a_path_speaks_tls_too() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["app.internal"]);
    let config = server(&pki, "app", &[&TLS13], false);
    let path = pki.path("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (sender, seen) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (config, sender) = (Arc::clone(&config), sender.clone());
            thread::spawn(move || serve(stream.unwrap(), config, Ending::Clean, &sender));
        }
    });
    let proxy = start(&pki, &format!("tls://unix:{}", path.display()), |config| {
        config.tls.upstream.server_name = Some("app.internal".parse().unwrap());
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"over a path");
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap().name.as_deref(), Some("app.internal"));
    end(&mut tls);
    read_all(&mut tls);
    proxy.finish();
}

#[test]
fn an_upstream_that_cannot_be_trusted_gets_no_byte_and_the_reason_is_said() {
    let pki = Pki::new();
    let other = Pki::new();
    pki.issue("wrong-name", &P256, &["elsewhere.test"]);
    pki.issue_until("expired", &P256, &["localhost"], 2021);
    pki.issue("good", &P256, &["localhost"]);
    other.issue("stranger", &P256, &["localhost"]);
    let certificate = UpstreamCounter::FailedCertificate;
    let cases = [
        (
            server(&pki, "wrong-name", &[&TLS13], false),
            certificate,
            "the certificate is not for localhost, but for elsewhere.test",
        ),
        (server(&pki, "expired", &[&TLS12], false), certificate, "the certificate has expired; renew it"),
        (
            server(&other, "stranger", &[&TLS13], false),
            certificate,
            "the authority that it names; name the authority that signed it with --upstream-ca FILE",
        ),
        (
            server(&pki, "good", &[&TLS12], true),
            UpstreamCounter::FailedAlert,
            "refuses the TLS handshake with the alert",
        ),
    ];
    for (config, counter, expected) in cases {
        let (upstream, seen) = tcp_upstream(config, Ending::Clean);
        let mut proxy = start(&pki, &upstream, |_| {});
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.write_all(b"secret").unwrap();
        assert_eq!(read_all(&mut tls), (Vec::new(), true), "{expected}");
        proxy.expect(ProxyCounter::UpstreamConnectsFailed, 1);
        let said = notices(&proxy.proxy);
        assert!(said.contains(expected), "{said}");
        assert!(seen.try_recv().is_err(), "{expected}: the handshake is not complete");
        let upstream = &proxy.finish().upstreams.all()[0].clone();
        assert_eq!((upstream.counters[counter], upstream.counters.sum(&UpstreamCounter::FAILED)), (1, 1));
    }
}

#[test]
fn any_certificate_is_accepted_only_where_that_is_asked_for() {
    let (pki, other) = (Pki::new(), Pki::new());
    other.issue("stranger", &P256, &["elsewhere.test"]);
    let (upstream, _seen) = tcp_upstream(server(&other, "stranger", &[&TLS13], false), Ending::Clean);
    let proxy = start(&pki, &upstream, |config| {
        config.tls.upstream = UpstreamTls { is_insecure: true, ..UpstreamTls::default() };
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    let settings = proxy.proxy.settings();
    assert!(settings.iter().any(|setting| setting.name == "proxy.upstream-tls-insecure"), "{settings:?}");
}

#[test]
fn an_upstream_that_asks_for_it_gets_the_proxys_certificate() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    pki.issue("proxy", &P256, &["proxy.test"]);
    for version in [&TLS12, &TLS13] {
        let (upstream, seen) = tcp_upstream(server(&pki, "app", &[version], true), Ending::Clean);
        let proxy =
            start(&pki, &upstream, |config| config.tls.upstream.certificate = Some(pki.load("proxy")));
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        echo(&mut tls, b"hello");
        assert!(seen.recv_timeout(PATIENCE).unwrap().has_client_certificate);
    }
}

#[test]
fn a_refusal_of_the_proxys_certificate_after_the_handshake_is_a_failed_attempt() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    let (upstream, _seen) = tcp_upstream(server(&pki, "app", &[&TLS13], true), Ending::Clean);
    let mut proxy = start(&pki, &upstream, |_| {});
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"hello").unwrap();
    assert_eq!(read_all(&mut tls), (Vec::new(), false), "no close_notify");
    proxy.expect(ProxyCounter::UpstreamBroken, 1);
    let said = notices(&proxy.proxy);
    assert!(said.contains("cannot be reached: it refuses the TLS handshake with the alert"), "{said}");
    let total = proxy.finish();
    assert_eq!(total.upstreams.all()[0].counters[UpstreamCounter::FailedAlert], 1);
}

/// An upstream that reads `hello`, perhaps answers and waits for the client's end, and ends without `close_notify`.
fn truncating_upstream(config: Arc<ServerConfig>, answers: bool, waits: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let mut tls = shake_hands(listener.accept().unwrap().0, config).unwrap();
        let mut hello = [0; 5];
        tls.read_exact(&mut hello).unwrap();
        if answers {
            tls.write_all(&hello).unwrap();
        }
        if waits {
            assert_eq!(tls.read(&mut hello).unwrap(), 0);
        }
        tls.sock.end();
    });
    format!("tls://localhost:{port}")
}

#[test]
fn an_upstream_that_breaks_off_does_not_look_as_if_it_had_ended() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    // The client awaits an answer, or has not ended.
    for (answers, waits) in [(false, true), (true, false)] {
        let config = server(&pki, "app", &[&TLS13], false);
        let mut proxy = start(&pki, &truncating_upstream(config, answers, waits), |_| {});
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.write_all(b"hello").unwrap();
        if answers {
            tls.read_exact(&mut [0; 5]).unwrap();
        }
        if waits {
            end(&mut tls);
        }
        assert_eq!(read_all(&mut tls), (Vec::new(), false), "no close_notify");
        proxy.expect(ProxyCounter::UpstreamBroken, 1);
        proxy.finish();
    }
}

#[test]
fn an_answered_client_that_ends_first_needs_no_close_notify_of_its_upstream() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    let (upstream, _seen) = tcp_upstream(server(&pki, "app", &[&TLS13], false), Ending::Truncated);
    let mut proxy = start(&pki, &upstream, |_| {});
    for sent in [&b"hello"[..], b""] {
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.conn.complete_io(&mut tls.sock).unwrap();
        echo(&mut tls, sent);
        end(&mut tls);
        assert_eq!(read_all(&mut tls), (Vec::new(), false), "bytes may be missing");
    }
    proxy.expect(ProxyCounter::Closed, 2);
    let total = proxy.finish();
    assert!(total.connections.iter().all(|record| record.outcome == ConnectionOutcome::Ended));
    assert_eq!((total.counters[ProxyCounter::UpstreamBroken], total.counters[ProxyCounter::Failed]), (0, 0));
    assert_eq!(total.upstreams.all()[0].counters[UpstreamCounter::Broken], 0);
}

#[test]
fn an_upstream_that_has_ended_gets_all_that_its_client_still_sends() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    let config = server(&pki, "app", &[&TLS13], false);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // Little room: what the client sends last waits in the proxy.
    socket2::SockRef::from(&listener).set_recv_buffer_size(4 << 10).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (release, released) = channel::<()>();
    let (total, counted) = channel();
    thread::spawn(move || {
        let mut tls = shake_hands(listener.accept().unwrap().0, config).unwrap();
        tls.conn.send_close_notify();
        tls.flush().unwrap();
        released.recv().unwrap();
        let mut received = Vec::new();
        let is_whole = tls.read_to_end(&mut received).is_ok();
        total.send((received, is_whole)).unwrap();
    });
    let proxy = start(&pki, &format!("tls://localhost:{port}"), |_| {});
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    assert_eq!(read_all(&mut tls), (Vec::new(), true), "the upstream's end is passed on");
    let sent = pattern(8 << 20);
    let sending = thread::spawn({
        let sent = sent.clone();
        move || {
            tls.write_all(&sent).unwrap();
            end(&mut tls);
            tls
        }
    });
    release.send(()).unwrap();
    let (received, is_whole) = counted.recv_timeout(PATIENCE).unwrap();
    sending.join().unwrap();
    assert!(received == sent && is_whole, "{} of {} bytes, {is_whole}", received.len(), sent.len());
    proxy.finish();
}

#[test]
fn a_proxy_header_goes_out_before_tls() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    let config = server(&pki, "app", &[&TLS13], false);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, seen) = channel();
    let (lines, header) = channel();
    thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !line.ends_with(b"\r\n") && stream.read(&mut byte).unwrap() == 1 {
            line.push(byte[0]);
        }
        lines.send(String::from_utf8(line).unwrap()).unwrap();
        serve(stream, config, Ending::Clean, &sender);
    });
    let mut proxy = start(&pki, &format!("tls://localhost:{port}"), |config| {
        config.proxy_protocol = Some(proxy_core::proxy_protocol::ProxyProtocol::V1);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    let own = tls.sock.local_addr().unwrap();
    echo(&mut tls, b"hello");
    let line = header.recv_timeout(PATIENCE).unwrap();
    assert!(line.starts_with("PROXY TCP4 127.0.0.1 127.0.0.1 ") && line.contains(&own.port().to_string()));
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap().name.as_deref(), Some("localhost"));
    proxy.expect(ProxyCounter::BytesIn, 5);
}

#[test]
fn a_probe_completes_the_handshake() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    let (upstream, _seen) = tcp_upstream(server(&pki, "app", &[&TLS13], false), Ending::Clean);
    let upstream: proxy_core::Upstream = upstream.parse().unwrap();
    let trusting = UpstreamTls { ca: Some(pki.client_ca()), ..UpstreamTls::default() };
    upstream.probe(None, &trusting).unwrap();
    let other = UpstreamTls { ca: Some(Pki::new().client_ca()), ..UpstreamTls::default() };
    let error = upstream.probe(None, &other).unwrap_err().to_string();
    assert!(error.contains("cannot be reached: the certificate"), "{error}");
}

#[test]
fn what_speaks_no_tls_or_says_nothing_is_given_up() {
    fn silent(stream: &mut dyn TestStream, _: &AtomicU64) {
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
    }
    fn closing(stream: &mut dyn TestStream, _: &AtomicU64) {
        // All of the hello, since unread bytes would make the end a reset.
        let mut record = [0; 5];
        let _ = stream.read_exact(&mut record);
        let _ = stream.read_exact(&mut vec![0; usize::from(u16::from_be_bytes([record[3], record[4]]))]);
    }
    fn plain(stream: &mut dyn TestStream, _: &AtomicU64) {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = stream.read(&mut [0; 1024]);
    }
    let pki = Pki::new();
    for (serve, expected) in [
        (silent as fn(&mut dyn TestStream, &AtomicU64), "timed out"),
        (closing, "end of file"),
        (plain, "it does not speak TLS on this port; name it without tls://"),
    ] {
        let served = TestUpstream::tcp(serve);
        let mut proxy = start(&pki, &format!("tls://{}", served.upstream), |config| {
            config.limits.connect_timeout = std::time::Duration::from_millis(300);
        });
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        assert_eq!(read_all(&mut tls), (Vec::new(), true), "{expected}");
        proxy.expect(ProxyCounter::UpstreamConnectsFailed, 1);
        let said = notices(&proxy.proxy);
        assert!(said.contains(expected), "{expected}: {said}");
        proxy.finish();
    }
}

#[test]
fn a_bad_upstream_beside_a_good_one_is_noticed_by_no_client() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    let (good, _seen) = tcp_upstream(server(&pki, "app", &[&TLS13], false), Ending::Clean);
    let plain = TestUpstream::tcp(serve_echo);
    let mut proxy = start(&pki, &format!("tls://{}", plain.upstream), |config| {
        config.upstreams.push(good.parse().unwrap());
        config.limits.connect_timeout = PATIENCE;
    });
    let config = proxy.client(&TLS13);
    for _ in 0..10 {
        let mut tls = proxy.connect(&config);
        echo(&mut tls, b"hello");
    }
    eventually("all are counted", || proxy.count(ProxyCounter::UpstreamConnects) == 10);
}

#[test]
fn each_upstream_may_have_a_name_of_its_own() {
    let pki = Pki::new();
    pki.issue("a", &P256, &["a.internal"]);
    pki.issue("b", &P256, &["b.internal"]);
    pki.issue("all", &P256, &["all.internal"]);
    let [a, b, all] =
        ["a", "b", "all"].map(|file| tcp_upstream(server(&pki, file, &[&TLS13], false), Ending::Clean));
    let mut proxy = start(&pki, &format!("{},name=a.internal,weight=2", a.0), |config| {
        config.upstreams.push(format!("{},name=b.internal", b.0).parse().unwrap());
        config.upstreams.push(all.0.parse().unwrap());
        // The certificate of another upstream.
        config.upstreams.push(format!("{},name=b.internal", a.0).parse().unwrap());
        config.upstream_check = Some("tls,interval=1s,fall=1".parse().unwrap());
        config.tls.upstream.server_name = Some("all.internal".parse().unwrap());
    });
    eventually("all are checked", || {
        proxy.collect();
        proxy.total.upstreams.all().iter().all(|it| it.counters[UpstreamCounter::Checks] > 0)
    });
    let config = proxy.client(&TLS13);
    let open = [0; 8].map(|_| {
        let mut tls = proxy.connect(&config);
        echo(&mut tls, b"hello");
        tls
    });
    proxy.collect();
    let counted = |counter| {
        let counts: Vec<_> = proxy.total.upstreams.all().iter().map(|it| it.counters[counter]).collect();
        counts
    };
    assert_eq!(counted(UpstreamCounter::Connections), [4, 2, 2, 0]);
    assert_eq!(counted(UpstreamCounter::ChecksFailed)[..3], [0, 0, 0]);
    let status = proxy.total.upstreams.all()[3].status.as_ref().unwrap();
    assert!(status.reason.contains("b.internal"), "{}", status.reason);
    for ((_, seen), name) in [(a, "a.internal"), (b, "b.internal"), (all, "all.internal")] {
        let names: Vec<_> = seen.try_iter().map(|seen| seen.name.unwrap()).collect();
        assert!(!names.is_empty() && names.iter().all(|seen| seen == name), "{name}: {names:?}");
    }
    drop(open);
}

#[test]
fn replaced_authorities_are_taken_over() {
    let (pki, next) = (Pki::new(), Pki::new());
    next.issue("app", &P256, &["localhost"]);
    let (upstream, _seen) = tcp_upstream(server(&next, "app", &[&TLS13], false), Ending::Clean);
    let proxy = start(&pki, &upstream, |_| {});
    let config = proxy.client(&TLS13);
    let mut refused = proxy.connect(&config);
    assert_eq!(read_all(&mut refused), (Vec::new(), true));
    crate::pki::replace(&pki.path("ca.pem"), &std::fs::read(next.path("ca.pem")).unwrap());
    let refreshed = proxy.proxy.reload();
    assert!(refreshed.changes.iter().any(|change| change.name == "proxy.upstream-ca"), "{refreshed:?}");
    eventually("the upstream is tried again", || {
        let mut tls = proxy.connect(&config);
        tls.write_all(b"x").is_ok() && tls.read_exact(&mut [0]).is_ok()
    });
}

#[test]
fn a_client_is_not_read_while_its_upstream_reads_nothing() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    let config = server(&pki, "app", &[&TLS13], false);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (release, released) = channel::<()>();
    let (total, counted) = channel();
    thread::spawn(move || {
        let mut tls = shake_hands(listener.accept().unwrap().0, config).unwrap();
        released.recv().unwrap();
        let (mut buffer, mut n) = (vec![0; 64 << 10], 0);
        while let Ok(read @ 1..) = tls.read(&mut buffer) {
            n += read;
        }
        total.send(n).unwrap();
    });
    let mut proxy = start(&pki, &format!("tls://localhost:{port}"), |_| {});
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.conn.complete_io(&mut tls.sock).unwrap();
    tls.sock.set_nonblocking(true).unwrap();
    let (piece, mut sent) = (vec![7; 16 << 10], 0);
    // It ends when nothing was taken for a while; the kernel's buffers take a few MiB.
    let mut last = std::time::Instant::now();
    while last.elapsed() < std::time::Duration::from_millis(500) {
        assert!(sent < 256 << 20, "the proxy reads on and on");
        if tls.conn.wants_write() {
            match tls.conn.write_tls(&mut tls.sock) {
                Ok(_) => last = std::time::Instant::now(),
                Err(_) => thread::sleep(std::time::Duration::from_millis(5)),
            }
        } else {
            sent += tls.conn.writer().write(&piece).unwrap();
        }
    }
    proxy.collect();
    release.send(()).unwrap();
    tls.sock.set_nonblocking(false).unwrap();
    end(&mut tls);
    assert_eq!(counted.recv_timeout(PATIENCE).unwrap(), sent);
    proxy.expect(ProxyCounter::BytesIn, sent as u64);
}
