//! HTTP/2 against a server that counts for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use loadgen::{Expect, LoadConfig, RequestBody, Target, Template, Trust, probe};
use records::metrics::{LoadCounter as C, LoadLatency as L};
use records::setting::{Applies, Value};
use records::values::LoadEvent as E;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::support::{ServerAction, TestServer, TlsVersion, collect_until, http2_plan, run};

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerBehaviour {
    /// Answers with the request's body.
    Echo,
    /// Answers with [`fields`].
    Fields,
    /// Answers 503.
    Busy,
    /// Refuses the stream without having looked at it.
    Refuse,
    /// Breaks off within the answer.
    Break,
    /// Says nothing.
    Stall,
    /// Answers, and says that this was the last.
    GoAway,
}

#[derive(Default)]
struct Http2ServerCounts {
    connections: AtomicU64,
    requests: AtomicU64,
    /// Requests at a time, the most.
    streams_max: AtomicU64,
}

struct Http2Server {
    url: String,
    certificate: Option<Vec<u8>>,
    seen: Arc<Http2ServerCounts>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Http2Server {
    fn start(with_tls: bool, script: impl Fn(u64) -> ServerBehaviour + Send + Sync + 'static) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (scheme, address) = (if with_tls { "https" } else { "http" }, listener.local_addr().unwrap());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let tls = with_tls.then(|| {
            let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let mut config = rustls::ServerConfig::builder_with_provider(provider)
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(vec![made.cert.der().clone()], key)
                .unwrap();
            config.alpn_protocols = vec![b"h2".to_vec()];
            config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
            TlsAcceptor::from(Arc::new(config))
        });
        let (stop, stopped) = oneshot::channel();
        let (seen, script) = (Arc::new(Http2ServerCounts::default()), Arc::new(script));
        let shared = Arc::clone(&seen);
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                let accepting = async {
                    loop {
                        let (tcp, _) = listener.accept().await.unwrap();
                        tcp.set_nodelay(true).unwrap();
                        shared.connections.fetch_add(1, Ordering::SeqCst);
                        let (seen, script, tls) = (Arc::clone(&shared), Arc::clone(&script), tls.clone());
                        tokio::spawn(async move {
                            match tls {
                                None => serve(tcp, &seen, &*script).await,
                                Some(tls) => {
                                    if let Ok(stream) = tls.accept(tcp).await {
                                        serve(stream, &seen, &*script).await;
                                    }
                                }
                            }
                        });
                    }
                };
                tokio::select! {
                    () = accepting => {}
                    _ = stopped => {}
                }
            });
        });
        let certificate = with_tls.then(|| made.cert.der().to_vec());
        let url = format!("{scheme}://{address}/path");
        Self { url, certificate, seen, stop: Some(stop), thread: Some(thread) }
    }

    fn config(&self, streams: u32, plan_text: &str) -> LoadConfig {
        let target: Target = self.url.parse().unwrap();
        let trust = self.certificate.clone().map_or(Trust::Roots, Trust::Certificate);
        LoadConfig::new(target, http2_plan(streams, plan_text), trust)
    }

    fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }

    fn connections(&self) -> u64 {
        self.seen.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Http2Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

async fn serve(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    seen: &Http2ServerCounts,
    script: &(impl Fn(u64) -> ServerBehaviour + Send + Sync),
) {
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    let open = Arc::new(AtomicU64::new(0));
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let nth = seen.requests.fetch_add(1, Ordering::SeqCst);
        let act = script(nth);
        seen.streams_max.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        if act == ServerBehaviour::GoAway {
            connection.graceful_shutdown();
        }
        let open = Arc::clone(&open);
        tokio::spawn(async move {
            let mut body = Vec::new();
            let mut receiving = request.into_body();
            while let Some(Ok(piece)) = receiving.data().await {
                let _ = receiving.flow_control().release_capacity(piece.len());
                body.extend_from_slice(&piece);
            }
            // So that those that come together are open together.
            tokio::time::sleep(Duration::from_millis(1)).await;
            open.fetch_sub(1, Ordering::SeqCst);
            let answer = |status: u16| {
                http::Response::builder().status(status).header("x-filler", "f".repeat(100)).body(()).unwrap()
            };
            match act {
                ServerBehaviour::Echo | ServerBehaviour::GoAway => {
                    let mut stream = respond.send_response(answer(200), false).unwrap();
                    let _ = stream.send_data(Bytes::from(body), true);
                }
                ServerBehaviour::Fields => {
                    let mut answer = answer(200);
                    for (name, value) in fields(nth) {
                        let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
                        answer.headers_mut().append(name, http::HeaderValue::from_bytes(&value).unwrap());
                    }
                    drop(respond.send_response(answer, true));
                }
                ServerBehaviour::Busy => drop(respond.send_response(answer(503), true)),
                ServerBehaviour::Refuse => respond.send_reset(h2::Reason::REFUSED_STREAM),
                ServerBehaviour::Break => {
                    let mut stream = respond.send_response(answer(200), false).unwrap();
                    let _ = stream.send_data(Bytes::from_static(b"begun"), false);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    stream.send_reset(h2::Reason::INTERNAL_ERROR);
                }
                ServerBehaviour::Stall => tokio::time::sleep(Duration::from_secs(60)).await,
            }
        });
    }
}

/// Header fields of an answer: some that come again, and some that do not, of all bytes that may be sent.
fn fields(nth: u64) -> Vec<(String, Vec<u8>)> {
    let varied = |seed: u64| {
        let bytes = (0..seed * 37 % 300).map(|at| (seed * 13 + at * 7 % 251) as u8);
        bytes.filter(|byte| matches!(byte, b' '..=b'~' | 0x80..)).collect::<Vec<u8>>()
    };
    (0..5).map(|field| (format!("x-{}", (nth + field) % 11), varied(nth * field % 71))).collect()
}

fn echo(bytes: usize) -> Vec<Template> {
    vec![Template { expect: Expect::Echo, ..Template::post("/echo", bytes) }]
}

#[test]
fn streams_share_connections_and_every_body_comes_back() {
    for with_tls in [false, true] {
        let server = Http2Server::start(with_tls, |_| ServerBehaviour::Echo);
        let config = server.config(8, "connections=4,requests=800,threads=2");
        probe(&config, Duration::from_secs(2)).unwrap();
        let (all, load) = run(LoadConfig { requests: echo(30_000), ..config });
        let counts = &all.counters;
        assert_eq!((counts[C::Ok], server.requests()), (800, 800), "{counts:?} {:?}", all.events);
        // One more for the probe.
        assert_eq!((counts[C::Opened], server.connections()), (4, 5));
        assert_eq!((counts[C::BodyIn], counts[C::BodyOut]), (800 * 30_000, 800 * 30_000));
        assert_eq!(server.seen.streams_max.load(Ordering::SeqCst), 8);
        assert_eq!(counts[C::Reused], 796);
        for class in [L::Service, L::Total, L::FirstByte] {
            assert_eq!(all.latencies[class].count(), 800, "{class:?}");
        }
        assert_eq!(all.latencies[L::Connect].count(), 4);
        assert_eq!(counts[C::HandshakesFull], if with_tls { 4 } else { 0 });
        let sources = load.sources();
        assert_eq!(sources.iter().map(|source| source.requests_ok).sum::<u64>(), 800);
        assert_eq!(sources.iter().map(|source| source.bytes_out).sum::<u64>(), counts[C::BytesOut]);
    }
}

#[test]
fn the_savings_of_header_compression_are_counted_on_the_wire() {
    let server = Http2Server::start(false, |_| ServerBehaviour::Echo);
    let (all, _) = run(server.config(1, "connections=1,requests=100"));
    let (wire, plain) = (all.counters[C::HeadOut], all.counters[C::HeadPlain]);
    assert!(plain > 100 * 110, "{plain}");
    // After the first answer a filled-up table says it all in a few bytes.
    assert!(wire > 100 && wire < plain / 5, "{wire} of {plain}");
}

#[test]
fn header_fields_are_read_as_another_implementation_writes_them() {
    let server = Http2Server::start(false, |_| ServerBehaviour::Fields);
    let (all, _) = run(server.config(3, "connections=1,requests=500"));
    assert_eq!(all.counters[C::Ok], 500, "{:?}", all.events);
    let len = |(name, value): (String, Vec<u8>)| name.len() + value.len();
    let sum = |nth| ":status200x-filler".len() + 100 + fields(nth).into_iter().map(len).sum::<usize>();
    assert_eq!(all.counters[C::HeadPlain], (0..500).map(sum).sum::<usize>() as u64);
}

#[test]
fn an_open_loop_keeps_its_schedule() {
    let server = Http2Server::start(false, |_| ServerBehaviour::Echo);
    let (all, load) = run(server.config(4, "rate=500,duration=1s,warmup=200ms,connections=2"));
    let counts = &all.counters;
    assert_eq!((counts[C::Scheduled], counts[C::Warmup], counts[C::Ok]), (500, 100, 400), "{counts:?}");
    assert_eq!(all.latencies[L::Response].count(), 400);
    assert_eq!(load.measured().scheduled, Duration::from_millis(800));
}

#[test]
fn resumption_and_keepalive_follow_their_settings() {
    let server = Http2Server::start(true, |_| ServerBehaviour::Echo);
    let (all, _) = run(server.config(1, "connections=1,requests=100,keep-alive=5,resume=50%"));
    let counts = &all.counters;
    assert_eq!((counts[C::Opened], counts[C::ResumptionsWanted]), (20, 10), "{counts:?}");
    assert_eq!(counts[C::HandshakesResumed], counts[C::ResumptionsOffered]);
    assert!(counts[C::HandshakesResumed] >= 9, "{counts:?}");
}

#[test]
fn each_failure_has_its_event() {
    for (act, class, event) in [
        (ServerBehaviour::Busy, C::FailedStatus, E::Status(503)),
        (ServerBehaviour::Break, C::FailedShort, E::Short),
        (ServerBehaviour::Stall, C::FailedTimeout, E::AnswerTimeout),
        (ServerBehaviour::Refuse, C::FailedReset, E::Reset),
    ] {
        let server = Http2Server::start(false, move |_| act);
        let config = server.config(2, "connections=1,requests=6");
        let (all, _) = run(LoadConfig { request_timeout: Duration::from_millis(300), ..config });
        assert_eq!((all.counters[class], all.events.of(event)), (6, 6), "{act:?}: {:?}", all.events);
        assert_eq!(all.counters[C::Ok], 0);
    }
}

#[test]
fn no_request_is_lost_when_a_connection_sends_goaway() {
    let server = Http2Server::start(false, |nth| {
        if nth % 10 == 9 { ServerBehaviour::GoAway } else { ServerBehaviour::Echo }
    });
    let (all, _) = run(server.config(4, "connections=2,requests=200"));
    let counts = &all.counters;
    assert_eq!((counts[C::Ok], counts[C::Failed]), (200, 0), "{:?}", all.events);
    assert!(counts[C::Opened] > 2, "{counts:?}");
}

#[test]
fn response_bodies_are_compared() {
    let server = Http2Server::start(false, |_| ServerBehaviour::Echo);
    let wrong = Template {
        body: RequestBody::Exact(b"ping"[..].into()),
        expect: Expect::Bytes(5),
        ..Template::post("/", 0)
    };
    let (all, _) = run(LoadConfig { requests: vec![wrong], ..server.config(1, "connections=1,requests=5") });
    assert_eq!((all.counters[C::FailedBody], all.counters[C::Ok]), (5, 0));
}

#[test]
fn a_stop_ends_it_also_while_the_server_stalls() {
    let server =
        Http2Server::start(
            false,
            |nth| if nth < 20 { ServerBehaviour::Echo } else { ServerBehaviour::Stall },
        );
    let mut load = loadgen::Load::start(server.config(3, "connections=2")).unwrap();
    let mut all = records::delta::LoadDelta::default();
    collect_until(&mut load, &mut all, |counts, _| counts[C::Ok] == 20);
    load.stop();
    collect_until(&mut load, &mut all, |_, ended| ended);
    crate::support::assert_adds_up(&all.counters);
    assert_eq!((all.counters[C::Unfinished], all.counters[C::Failed]), (6, 0), "{:?}", all.counters);
}

#[test]
fn connections_keepalive_and_body_size_change_while_the_load_runs() {
    let server = Http2Server::start(false, |_| ServerBehaviour::Echo);
    let config = LoadConfig { requests: echo(10), ..server.config(4, "connections=2,threads=2") };
    let mut load = loadgen::Load::start(config).unwrap();
    let mut all = records::delta::LoadDelta::default();
    let set = |load: &loadgen::Load, name: &str, value: Value| {
        let before = load.set(name, &value).unwrap();
        assert_eq!(before.applies, Applies::Live, "{name}");
    };
    collect_until(&mut load, &mut all, |counts, _| counts[C::Opened] == 2 && counts[C::Ok] > 10);
    set(&load, "load.connections", Value::Number(7.0));
    collect_until(&mut load, &mut all, |counts, _| counts[C::Opened] == 7);
    set(&load, "load.connections", Value::Number(3.0));
    collect_until(&mut load, &mut all, |counts, _| counts[C::Closed] == 4);
    let before = all.counters[C::BodyOut];
    set(&load, "load.body", Value::Number(100_000.0));
    collect_until(&mut load, &mut all, |counts, _| counts[C::BodyOut] > before + 3_000_000);
    set(&load, "load.keep-alive", Value::Text("5".into()));
    collect_until(&mut load, &mut all, |counts, _| counts[C::Opened] > 20);
    set(&load, "load.running", Value::Flag(false));
    collect_until(&mut load, &mut all, |counts, _| counts[C::Opened] == counts[C::Closed]);
    set(&load, "load.keep-alive", Value::Text("on".into()));
    set(&load, "load.running", Value::Flag(true));
    let before = all.counters[C::Ok];
    collect_until(&mut load, &mut all, |counts, _| counts[C::Ok] > before + 10);
    load.stop();
    collect_until(&mut load, &mut all, |_, ended| ended);
    crate::support::assert_adds_up(&all.counters);
    assert_eq!((all.counters[C::Failed], all.counters[C::Retried]), (0, 0), "{:?}", all.events);
    assert_eq!(all.counters[C::Ok], server.requests());
}

#[test]
fn a_connection_lives_no_longer_than_it_should() {
    let server = Http2Server::start(false, |_| ServerBehaviour::Echo);
    let (all, _) = run(server.config(4, "connections=1,rate=200,duration=1s,lifetime=100ms"));
    // How many exactly is up to how busy the machine is; each carries what falls due in its time.
    assert!((2..100).contains(&all.counters[C::Opened]), "{:?}", all.counters);
    assert_eq!(all.counters[C::Ok], 200, "{:?}", all.events);
}

#[test]
fn a_server_without_http2_is_detected() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(1));
    let target = server.url("/").parse().unwrap();
    let config = LoadConfig::new(target, http2_plan(1, "connections=1,requests=2"), Trust::Insecure);
    let error = probe(&config, Duration::from_secs(1)).unwrap_err().to_string();
    assert!(error.contains("does not speak HTTP/2"), "{error}");
    let (all, _) = run(config);
    assert_eq!(all.events.of(E::Protocol), 2, "{:?}", all.events);
}
