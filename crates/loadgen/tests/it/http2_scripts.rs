//! HTTP/2 against a server that sends what it likes: each failure has its class, and nothing hangs.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use loadgen::{LoadConfig, Template, Trust};
use records::delta::LoadDelta;
use records::metrics::{LoadCounter as C, LoadLatency};
use records::values::LoadEvent as E;

use crate::frames::*;
use crate::support::{eventually, http2_plan, run};

const PREFACE_BYTES: usize = 24;
const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];

/// `:status: 200`, and no body.
fn ok(id: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, id, &[0x88])
}

/// What the server does with a request.
enum ScriptedReply {
    Send(Vec<u8>),
    SendAndClose(Vec<u8>),
    Nothing,
}

/// A request as the script sees it.
struct ScriptedStream {
    /// On which connection, from 0.
    connection: u64,
    id: u32,
}

struct ScriptedHttp2Server {
    url: String,
    stop: Arc<AtomicBool>,
    seen: Arc<ScriptCounts>,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[derive(Default)]
struct ScriptCounts {
    connections: AtomicU64,
    requests: AtomicU64,
    /// Codes of the client's farewells, summed up, and how many there were.
    goaway_codes: AtomicU64,
    goaways: AtomicU64,
    resets: AtomicU64,
}

impl ScriptedHttp2Server {
    /// A server that begins with its settings.
    fn start(
        settings: &[u8],
        script: impl Fn(&ScriptedStream) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(ScriptCounts::default()));
        let (stopped, shared, script) = (Arc::clone(&stop), Arc::clone(&seen), Arc::new(script));
        let begin = frame(SETTINGS, 0, 0, settings);
        let thread = std::thread::spawn(move || {
            let mut serving = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (seen, script, begin) = (Arc::clone(&shared), Arc::clone(&script), begin.clone());
                serving.push(std::thread::spawn(move || {
                    // It ends with whatever the client does.
                    let _ = serve(stream.unwrap(), &begin, &seen, &*script);
                }));
            }
            for thread in serving {
                thread.join().unwrap();
            }
        });
        Self { url: format!("http://{address}/"), stop, seen, thread: Some(thread) }
    }

    fn config(&self, streams: u32, plan_text: &str) -> LoadConfig {
        LoadConfig::new(self.url.parse().unwrap(), http2_plan(streams, plan_text), Trust::Roots)
    }

    fn requests(&self) -> u64 {
        self.seen.requests.load(Ordering::SeqCst)
    }
}

impl Drop for ScriptedHttp2Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        drop(TcpStream::connect(address));
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(
    mut stream: TcpStream,
    begin: &[u8],
    seen: &ScriptCounts,
    script: &impl Fn(&ScriptedStream) -> ScriptedReply,
) -> std::io::Result<()> {
    let connection = seen.connections.fetch_add(1, Ordering::SeqCst);
    stream.set_nodelay(true)?;
    stream.read_exact(&mut [0; PREFACE_BYTES])?;
    stream.write_all(begin)?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head)?;
        let [_, b, c, kind, _, id @ ..] = head;
        let mut payload = vec![0; usize::from(b) << 8 | usize::from(c)];
        stream.read_exact(&mut payload)?;
        match kind {
            HEADERS => {
                seen.requests.fetch_add(1, Ordering::SeqCst);
                match script(&ScriptedStream { connection, id: u32::from_be_bytes(id) }) {
                    ScriptedReply::Send(bytes) => stream.write_all(&bytes)?,
                    ScriptedReply::SendAndClose(bytes) => {
                        stream.write_all(&bytes)?;
                        stream.shutdown(Shutdown::Write)?;
                    }
                    ScriptedReply::Nothing => {}
                }
            }
            RST_STREAM => drop(seen.resets.fetch_add(1, Ordering::SeqCst)),
            GOAWAY => {
                seen.goaways.fetch_add(1, Ordering::SeqCst);
                seen.goaway_codes.fetch_add(payload[7].into(), Ordering::SeqCst);
            }
            _ => {}
        }
    }
}

fn six(server: &ScriptedHttp2Server) -> LoadDelta {
    let (all, _) = run(server.config(2, "connections=1,requests=6"));
    assert_eq!(all.counters[C::Scheduled], 6);
    all
}

#[test]
fn a_protocol_error_is_counted_and_sent_to_the_server() {
    type Case = (&'static str, fn(u32) -> Vec<u8>);
    let cases: [Case; 10] = [
        ("a frame that is too long", |id| frame(DATA, 0, id, &vec![0; 16_385])),
        ("no header block", |id| frame(HEADERS, END_HEADERS, id, &[0xff; 20])),
        ("continuations without an end", |id| {
            [frame(HEADERS, 0, id, &[0x88]), frame(CONTINUATION, 0, id, b"").repeat(1_000)].concat()
        }),
        ("an endless header block", |id| {
            [frame(HEADERS, 0, id, &[0x88]), frame(CONTINUATION, 0, id, &[0; 16_000]).repeat(10)].concat()
        }),
        ("a header block that is decoded to 60 MB", |id| {
            let field = [&[0x88, 0x40, 0x01, b'a', 0x7f, 0xa1, 0x1e][..], &[b'b'; 4_000]].concat();
            [frame(HEADERS, 0, id, &field), frame(CONTINUATION, END_HEADERS, id, &[0xbe; 16_000])].concat()
        }),
        ("data on an idle stream", |id| frame(DATA, 0, id + 1_000, b"surprise")),
        ("a window that overflows", |_| frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        ("a push", |id| frame(5, END_HEADERS, id, &[0, 0, 0, 2, 0x82])),
        ("a flood of pings", |_| frame(PING, 0, 0, &[0; 8]).repeat(5_000)),
        ("another protocol", |_| b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ];
    for (what, bytes) in cases {
        let server = ScriptedHttp2Server::start(&[], move |asked| ScriptedReply::Send(bytes(asked.id)));
        let all = six(&server);
        assert_eq!(all.counters[C::FailedProtocol], 6, "{what}: {:?} {:?}", all.counters, all.events);
        assert_eq!(all.events.of(E::Protocol), 6, "{what}");
        let seen = Arc::clone(&server.seen);
        drop(server);
        // The last words may be lost, since the connection is dropped with them.
        let [goaways, codes] = [&seen.goaways, &seen.goaway_codes].map(|count| count.load(Ordering::SeqCst));
        assert!(codes >= goaways, "{what}: {goaways} farewells, and none of them in peace");
    }
}

#[test]
fn reconnects_to_a_server_that_sends_goaway_are_delayed() {
    for then in [ScriptedReply::Send, ScriptedReply::SendAndClose] {
        let server = ScriptedHttp2Server::start(&[], move |_| then(frame(GOAWAY, 0, 0, &[0; 8])));
        let (all, _) = run(server.config(4, "connections=1,duration=500ms"));
        assert!((1..=20).contains(&all.counters[C::Opened]), "{:?}", all.counters);
        assert_eq!(all.counters[C::Ok], 0);
        assert_eq!(all.counters[C::FailedReset], all.counters[C::Failed], "{:?}", all.events);
    }
    let server =
        ScriptedHttp2Server::start(&[], |_| ScriptedReply::SendAndClose(frame(GOAWAY, 0, 0, &[0; 8])));
    let (all, load) = run(server.config(4, "rate=1000,connections=4,duration=500ms"));
    let counts = &all.counters;
    assert!(counts[C::Throttled] > 100, "{counts:?}");
    assert_eq!(load.measured().whole, Duration::from_millis(500));
}

#[test]
fn requests_that_goaway_leaves_out_are_sent_once_more() {
    // The first connection answers stream 1 once it has seen three, and has never looked at the others.
    let farewell = frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
    let server = ScriptedHttp2Server::start(&[], move |asked| match asked {
        ScriptedStream { connection: 0, id: 1 | 3 } => ScriptedReply::Nothing,
        ScriptedStream { connection: 0, .. } => ScriptedReply::Send([farewell.clone(), ok(1)].concat()),
        ScriptedStream { id, .. } => ScriptedReply::Send(ok(*id)),
    });
    let (all, _) = run(server.config(3, "connections=1,requests=10"));
    let counts = &all.counters;
    assert_eq!((counts[C::Ok], counts[C::Retried], counts[C::Opened]), (10, 2, 2), "{:?}", all.events);
    assert_eq!(server.requests(), 12);
    assert_eq!(counts[C::Sent], 10, "a request counts once");
}

#[test]
fn retries_keep_to_the_rate() {
    // Each connection serves its first request and refuses all others, which are sent once more.
    let server = ScriptedHttp2Server::start(&[], |asked| match asked.id {
        1 => ScriptedReply::Send(ok(1)),
        id => ScriptedReply::Send(frame(RST_STREAM, 0, id, &REFUSED_STREAM)),
    });
    let (all, _) = run(server.config(1, "rate=100,connections=2,duration=1500ms"));
    let counts = &all.counters;
    assert!((50..=76).contains(&counts[C::Retried]), "{counts:?}");
    assert!(server.requests() <= 152, "{} in a second and a half: {counts:?}", server.requests());
    assert!(counts[C::Throttled] >= counts[C::Retried] - 2, "{counts:?}");
    assert_eq!(counts[C::Throttled], counts[C::NeverSent]);
    let lag = &all.latencies[LoadLatency::Lag];
    assert_eq!(lag.count(), counts[C::Sent], "what was never to be sent has no time");
}

#[test]
fn a_cut_connection_fails_only_requests_with_a_response_begun() {
    let server = ScriptedHttp2Server::start(&[], move |asked| match asked {
        ScriptedStream { connection: 0, id: 1 } => ScriptedReply::Nothing,
        ScriptedStream { connection: 0, .. } => {
            let begun = frame(HEADERS, END_HEADERS, 1, &[0x88]);
            ScriptedReply::SendAndClose([begun, frame(DATA, 0, 1, b"half of")].concat())
        }
        ScriptedStream { id, .. } => ScriptedReply::Send(ok(*id)),
    });
    let (all, _) = run(server.config(2, "connections=1,requests=10"));
    let counts = &all.counters;
    assert_eq!((counts[C::Ok], counts[C::FailedShort], counts[C::Retried]), (9, 1, 1), "{:?}", all.events);
}

#[test]
fn a_server_that_takes_fewer_streams_gets_no_more_at_a_time() {
    // MAX_CONCURRENT_STREAMS is 1, so that each but the first few has to wait for the one before.
    let server = ScriptedHttp2Server::start(&[0, 3, 0, 0, 0, 1], |asked| ScriptedReply::Send(ok(asked.id)));
    let (all, _) = run(server.config(50, "connections=1,requests=500"));
    assert_eq!((all.counters[C::Ok], all.counters[C::Opened]), (500, 1), "{:?}", all.events);
}

#[test]
fn a_timeout_cancels_its_stream_and_nothing_else() {
    let server = ScriptedHttp2Server::start(&[], |asked| match asked.id % 4 {
        1 => ScriptedReply::Nothing,
        _ => ScriptedReply::Send(ok(asked.id)),
    });
    let config = server.config(2, "connections=1,requests=10");
    let (all, _) = run(LoadConfig { request_timeout: Duration::from_millis(200), ..config });
    let counts = &all.counters;
    assert_eq!(counts[C::Ok] + all.events.of(E::AnswerTimeout), 10, "{:?}", all.events);
    assert!(counts[C::Ok] >= 4 && all.events.of(E::AnswerTimeout) >= 1, "{:?}", all.events);
    assert_eq!(counts[C::Opened], 1);
    eventually("each was cancelled", || {
        server.seen.resets.load(Ordering::SeqCst) == all.events.of(E::AnswerTimeout)
    });
}

#[test]
fn a_missing_settings_frame_ends_in_the_request_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let config = LoadConfig {
        request_timeout: Duration::from_millis(200),
        requests: vec![Template::post("/", 1_000_000)],
        ..LoadConfig::new(url.parse().unwrap(), http2_plan(3, "connections=1,requests=6"), Trust::Roots)
    };
    let (all, _) = run(config);
    assert_eq!((all.counters[C::FailedTimeout], all.events.of(E::AnswerTimeout)), (6, 6), "{:?}", all.events);
}
