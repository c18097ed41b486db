//! Clients and upstreams that do not read what they asked for: the memory that a proxy in a process of its own takes.

use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use std::{env, fs};

use super::http2_client::*;
use super::support::*;
use crate::common;

/// What a connection may take, and what the process takes besides.
const CONNECTION_BYTES_MAX: usize = 6 << 20;
const PROCESS_BYTES_MAX: usize = 12 << 20;

const STREAMS: u32 = 128;
const FOLDER_VARIABLE: &str = "TLSDASH_TEST_PROXY_FOLDER";

const WIDE: &[(u16, u32)] = &[(INITIAL_WINDOW_SIZE, 0x7fff_ffff)];
const CLOSED: &[(u16, u32)] = &[(INITIAL_WINDOW_SIZE, 0)];

/// The bound on the process's memory in the test of it, and the variable with it in the other process, in bytes.
const MEMORY_MAX: usize = 128 << 20;
const MEMORY_VARIABLE: &str = "TLSDASH_TEST_PROXY_MEMORY";

/// A proxy in another process.
struct SeparateProxy {
    process: Child,
    folder: tempfile::TempDir,
}

impl SeparateProxy {
    /// Before an upstream that answers with `respond`, or else reads nothing.
    fn start(respond: Option<Respond>) -> Self {
        Self::start_with(respond, &[])
    }

    /// With these variables in its environment.
    fn start_with(respond: Option<Respond>, environment: &[(&str, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("app.sock")).unwrap();
        thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                match respond {
                    None => held.push(stream),
                    Some(respond) => drop(thread::spawn(move || {
                        serve(&stream, &Mutex::default(), respond, &EndlessResponses::default());
                    })),
                }
            }
        });
        let process = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--ignored", "memory::serves_in_a_process_of_its_own"])
            .env(FOLDER_VARIABLE, folder.path())
            .envs(environment.iter().cloned())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let proxy = Self { process, folder };
        eventually("the other process serves", || proxy.file("port").exists());
        proxy
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn connect(&self, settings: &[(u16, u32)]) -> Http2Client {
        Http2Client::begin(self.connect_for("h2"), settings)
    }

    fn connect_for(&self, alpn: &str) -> TlsStream {
        let port: u16 = fs::read_to_string(self.file("port")).unwrap().parse().unwrap();
        let certificate = fs::read(self.file("certificate")).unwrap();
        common::connect(([127, 0, 0, 1], port).into(), common::client_config(&certificate, &[alpn]))
    }

    /// Its memory by this line of the kernel's, in bytes.
    fn bytes(&self, line: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let kilobytes = status.lines().find_map(|text| text.strip_prefix(line)?.strip_suffix("kB")).unwrap();
        kilobytes.trim().parse::<usize>().unwrap() << 10
    }

    /// Its memory once that grows no more.
    fn settled_memory(&self) -> usize {
        const NOISE_BYTES: usize = 128 << 10;
        let (mut most, mut grew_at) = (0, Instant::now());
        eventually("its memory grows no more", || {
            let memory = self.bytes("VmRSS:");
            if memory > most + NOISE_BYTES {
                (most, grew_at) = (memory, Instant::now());
            }
            grew_at.elapsed() > Duration::from_secs(1)
        });
        most
    }
}

impl Drop for SeparateProxy {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

#[test]
#[ignore = "the other process of the tests in this file"]
fn serves_in_a_process_of_its_own() {
    let folder = env::var(FOLDER_VARIABLE).unwrap();
    let folder = Path::new(&folder);
    let memory_max = env::var(MEMORY_VARIABLE).ok().map(|max| max.parse().unwrap());
    let _ballast = vec![1_u8; memory_max.map_or(0, |max: usize| max * 9 / 16)];
    let (proxy, certificate) = start_proxy(folder.join("app.sock"), |config, http| {
        config.limits.memory_bytes_max = memory_max;
        // Few descriptors; other requests wait in the queue.
        http.limits.upstream_connections_max = 3 * STREAMS as usize;
    });
    fs::write(folder.join("certificate"), certificate).unwrap();
    fs::write(folder.join("new"), proxy.local_addrs()[0].port().to_string()).unwrap();
    fs::rename(folder.join("new"), folder.join("port")).unwrap();
    // Until the other process closes it.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Lets clients attack a proxy, and checks what it holds then.
fn expect_bounded(
    what: &str,
    respond: Option<Respond>,
    settings: &[(u16, u32)],
    clients: usize,
    attack: fn(&mut Http2Client),
) {
    let proxy = SeparateProxy::start(respond);
    let before = proxy.settled_memory();
    let clients: Vec<Http2Client> = (0..clients)
        .map(|_| {
            let mut client = proxy.connect(settings);
            client.send(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]));
            attack(&mut client);
            client
        })
        .collect();
    let grown = proxy.settled_memory().saturating_sub(before);
    let bound = PROCESS_BYTES_MAX + clients.len() * CONNECTION_BYTES_MAX;
    assert!(grown > 1 << 20, "{what}: {grown} bytes: this is no attack");
    assert!(grown < bound, "{what}: {grown} bytes for {} connections", clients.len());
}

fn streams() -> impl Iterator<Item = u32> {
    (0..STREAMS).map(|nth| 2 * nth + 1)
}

fn get_all(client: &mut Http2Client) {
    client.send(&streams().flat_map(get).collect::<Vec<u8>>());
}

#[test]
fn responses_that_nobody_reads_take_bounded_memory() {
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    const LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
    let attacks: [(&str, Respond); 4] = [
        ("chunks of a byte", |_| UpstreamResponse::Endless(CHUNKED.to_vec(), b"1\r\na\r\n".repeat(700))),
        ("long content", |_| UpstreamResponse::Endless(LENGTH.to_vec(), vec![b'x'; 64 << 10])),
        ("large heads", |_| {
            let fields = format!("x: {}\r\n", "y".repeat(15_000)).repeat(4);
            UpstreamResponse::bytes(format!("HTTP/1.1 200 OK\r\n{fields}content-length: 2\r\n\r\nok"))
        }),
        ("trailers", |_| {
            let fields = format!("x: {}\r\n", "y".repeat(300)).repeat(40);
            UpstreamResponse::bytes(format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n{fields}\r\n"
            ))
        }),
    ];
    for (what, respond) in attacks {
        for (settings, windows) in [(WIDE, "wide"), (CLOSED, "closed")] {
            expect_bounded(&format!("{what}, {windows} windows"), Some(respond), settings, 3, get_all);
        }
    }
}

#[test]
fn messages_that_nobody_reads_take_bounded_memory() {
    let respond: Respond = |request| {
        let accept = common::websocket_accept(request.values("sec-websocket-key")[0]);
        let head = format!("HTTP/1.1 101 Switching Protocols\r\nsec-websocket-accept: {accept}\r\n\r\n");
        UpstreamResponse::Endless(head.into(), vec![b'x'; 64 << 10])
    };
    for settings in [WIDE, CLOSED] {
        expect_bounded("messages", Some(respond), settings, 3, |client| {
            let mut fields = pseudo(b"CONNECT", b"/").to_vec();
            fields.push((b":protocol", b"websocket"));
            let head = block(&fields);
            let opened = streams().flat_map(|stream| frame(HEADERS, END_HEADERS, stream, &head));
            client.send(&opened.collect::<Vec<u8>>());
        });
    }
}

#[test]
fn slow_clients_do_not_take_more_than_the_bound_on_memory() {
    const CLIENTS: usize = 200;
    const LONG: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
    let proxy = SeparateProxy::start_with(
        Some(|_| UpstreamResponse::Endless(LONG.to_vec(), vec![b'x'; 64 << 10])),
        &[(MEMORY_VARIABLE, MEMORY_MAX.to_string())],
    );
    let connect = || {
        let mut client = proxy.connect(WIDE);
        client.send(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0])).then_some(client)
    };
    let mut slow = Vec::new();
    for mut client in (0..CLIENTS).filter_map(|_| connect()) {
        get_all(&mut client);
        slow.push(client);
    }
    assert!((5..CLIENTS).contains(&slow.len()), "{} are served at 95 %", slow.len());
    // Those that hold most are cut meanwhile.
    eventually("others are served again", || {
        connect().is_some_and(|mut client| client.send(&get(1)) && client.next().is_some())
    });
    let most = proxy.bytes("VmHWM:");
    assert!((MEMORY_MAX / 10 * 9..MEMORY_MAX).contains(&most), "{most} bytes");
    drop(slow);
    eventually("the kernel gets the memory back", || proxy.bytes("VmRSS:") < MEMORY_MAX / 20 * 17);
}

#[test]
fn connections_of_http1_that_are_idle_give_their_memory_to_others() {
    const CLIENTS: usize = 150;
    let proxy = SeparateProxy::start(Some(respond_ok));
    let ask = |tls: &mut TlsStream| {
        tls.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        let response = read_message(&mut BufReader::new(tls)).expect("it is answered");
        assert!(response.head.starts_with(b"HTTP/1.1 200"), "{response:?}");
    };
    let connect = || {
        let mut tls = proxy.connect_for("http/1.1");
        ask(&mut tls);
        tls
    };
    let mut first: Vec<TlsStream> = (0..CLIENTS).map(|_| connect()).collect();
    thread::sleep(Duration::from_secs(3));
    let before = proxy.bytes("VmRSS:");
    let second: Vec<TlsStream> = (0..CLIENTS).map(|_| connect()).collect();
    let each = (proxy.bytes("VmRSS:") - before) / CLIENTS;
    assert!(each < 12 << 10, "{each} bytes");
    first.iter_mut().for_each(ask);
    drop(second);
}

#[test]
fn requests_that_no_upstream_reads_take_bounded_memory() {
    // A field of 4,000 bytes that is kept in HPACK's table, and then named again and again.
    expect_bounded("heads", None, &[], 12, |client| {
        let mut kept = block(&pseudo(b"GET", b"/"));
        kept.extend_from_slice(&block(&[(b"a", &[b'v'; 3_900])]));
        let kept_at = block(&pseudo(b"GET", b"/")).len();
        kept[kept_at] = 0x40;
        let named = [block(&pseudo(b"GET", b"/")), vec![0xbe; 15]].concat();
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &kept));
        for stream in streams().skip(1) {
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &named));
        }
    });
    // Each adds a short field to HPACK's table, in a frame that is long for its other fields.
    expect_bounded("frames behind short fields", None, &[], 12, |client| {
        for stream in streams() {
            let mut fields = block(&[(b"a", b"v"), (b"b", &[b'v'; 15_000])]);
            fields[0] = 0x40;
            let fields = [block(&pseudo(b"GET", b"/")), fields].concat();
            client.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields));
        }
    });
    expect_bounded("content", None, &[], 3, |client| upload(client, 1));
    expect_bounded("content in small frames", None, &[], 3, |client| upload(client, 64));
}

/// Sends content on all streams, each in `pieces` of 16 KiB, as far as the windows of the connection and of each stream
/// allow.
fn upload(client: &mut Http2Client, pieces: usize) {
    const SENT_BYTES: usize = 16 << 10;
    client.tls.sock.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let post = block(&pseudo(b"POST", b"/"));
    client
        .send(&streams().flat_map(|stream| frame(HEADERS, END_HEADERS, stream, &post)).collect::<Vec<u8>>());
    let data = |stream| frame(DATA, 0, stream, &vec![b'x'; SENT_BYTES / pieces]).repeat(pieces);
    let mut window = 65_535;
    for _ in 0..3 {
        for stream in streams() {
            while window < SENT_BYTES {
                let Some(frame) = client.next() else { return };
                assert_ne!(frame.kind, GOAWAY, "{frame:?}");
                if frame.kind == WINDOW_UPDATE && frame.stream == 0 {
                    window += u32::from_be_bytes(frame.payload.try_into().unwrap()) as usize;
                }
            }
            client.send(&data(stream));
            window -= SENT_BYTES;
        }
    }
}
