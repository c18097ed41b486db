//! Clients that know what they did.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::servers::{OPENSSL, end};
use crate::alone::observe::test_bed::ObserveTestBed;
use crate::common::{PATIENCE, number, outside, send};

/// How long [`slow_network`] holds what a client sends.
const HELD: Duration = Duration::from_millis(300);

/// A version of TLS, by the names that the load and OpenSSL have for it.
#[derive(Clone, Copy)]
pub(super) struct Version {
    pub(super) name: &'static str,
    option: &'static str,
}

pub(super) const VERSIONS: [Version; 2] =
    [Version { name: "1.2", option: "-tls1_2" }, Version { name: "1.3", option: "-tls1_3" }];

/// What clients did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) connections: u64,
    pub(super) full: u64,
    pub(super) resumed: u64,
    pub(super) failed: u64,
    /// Full handshakes whose client offered a session.
    pub(super) refused: u64,
    /// Full handshakes with a `HelloRetryRequest`.
    pub(super) retried: u64,
    pub(super) unjudged: u64,
    pub(super) packets_lost: u64,
}

/// What clients do.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// Connections of the load.
    pub(super) connections: u32,
    /// Connections of each other kind.
    pub(super) others: u32,
    pub(super) requests_per_connection: u32,
}

/// Whether a client of OpenSSL completes its handshake.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Full,
    Failed,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.full += other.full;
        self.resumed += other.resumed;
        self.failed += other.failed;
        self.refused += other.refused;
        self.retried += other.retried;
    }

    /// As an entry of a journal has them.
    pub(super) fn of_entry(entry: &Value) -> Self {
        Self {
            connections: number(entry, "TLSDASH_CONNECTIONS_ACCEPTED_TOTAL"),
            full: number(entry, "TLSDASH_HANDSHAKES_FULL_TOTAL"),
            resumed: number(entry, "TLSDASH_HANDSHAKES_RESUMED_TOTAL"),
            failed: number(entry, "TLSDASH_HANDSHAKES_FAILED_TOTAL"),
            retried: number(entry, "TLSDASH_HANDSHAKES_RETRIED_TOTAL"),
            unjudged: number(entry, "TLSDASH_HANDSHAKES_UNJUDGED_TOTAL"),
            packets_lost: number(entry, "TLSDASH_PACKETS_LOST_TOTAL"),
            refused: 0,
        }
    }
}

/// Does what the plan says. Gives what was done.
pub(super) fn run(site: &ObserveTestBed, version: Version, plan: Plan, session: &Path) -> Counts {
    let mut counts = load(site, version, plan);
    for _ in 0..plan.others {
        counts.add(offer_session_of_another_server(site, version, session));
        counts.add(fail_handshakes(site, version));
        if version.name == "1.3" {
            counts.add(begin_with_another_group(site));
        }
    }
    counts
}

/// A load of full and resumed handshakes. The generator makes one more full handshake before it, to see whether the server
/// answers.
pub(super) fn load(site: &ObserveTestBed, version: Version, plan: Plan) -> Counts {
    let (keep, requests) = (plan.requests_per_connection, plan.requests_per_connection * plan.connections);
    let (keep, requests) = (keep.to_string(), requests.to_string());
    let load = site.load(&[
        "--resume",
        "80%",
        "-c",
        "8",
        "-k",
        &keep,
        "-n",
        &requests,
        "--tls-version",
        version.name,
    ]);
    let of = |pointer: &str| load.pointer(pointer).and_then(Value::as_u64).expect(pointer);
    assert_eq!((of("/requests/failed"), of("/handshakes/failed")), (0, 0), "{load:#}");
    let [full, resumed] = ["/handshakes/full", "/handshakes/resumed"].map(of);
    assert!(full > 0 && resumed > full, "{load:#}");
    let refused = of("/resumptions/offered") - of("/resumptions/observed");
    Counts { connections: of("/connections") + 1, full: full + 1, resumed, refused, ..Counts::default() }
}

/// A session of another server, in a file. This one refuses it.
pub(super) fn session_of_another_server(version: Version) -> (ObserveTestBed, PathBuf) {
    let other = ObserveTestBed::new();
    let server = OPENSSL.start(&other);
    let path = other.path("session");
    let path_text = path.to_str().unwrap();
    client(&other, &[version.option, "-sess_out", path_text], Expected::Full);
    end(server);
    assert!(path.exists(), "the server gave a session");
    (other, path)
}

fn offer_session_of_another_server(site: &ObserveTestBed, version: Version, session: &Path) -> Counts {
    client(site, &[version.option, "-sess_in", session.to_str().unwrap()], Expected::Full);
    Counts { connections: 1, full: 1, refused: 1, ..Counts::default() }
}

fn begin_with_another_group(site: &ObserveTestBed) -> Counts {
    client(site, &["-tls1_3", "-groups", "P-256:X25519"], Expected::Full);
    Counts { connections: 1, full: 1, retried: 1, ..Counts::default() }
}

/// One that distrusts the certificate, one that knows old versions only, one without TLS, and one that leaves.
fn fail_handshakes(site: &ObserveTestBed, version: Version) -> Counts {
    client(site, &[version.option, "-verify_return_error", "-verify", "1"], Expected::Failed);
    client(site, &["-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"], Expected::Failed);
    site.fail_handshake();
    drop(TcpStream::connect(site.listen).unwrap());
    Counts { connections: 4, failed: 4, ..Counts::default() }
}

/// One that says nothing until the server closes.
pub(super) fn stay_silent(site: &ObserveTestBed) -> Counts {
    let mut silent = TcpStream::connect(site.listen).unwrap();
    silent.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = silent.read_to_end(&mut Vec::new());
    Counts { connections: 1, failed: 1, ..Counts::default() }
}

/// A handshake of OpenSSL and, if it is complete, a request.
fn client(site: &ObserveTestBed, arguments: &[&str], expected: Expected) {
    let mut openssl = outside("openssl", "openssl");
    openssl
        .args(["s_client", "-ign_eof", "-servername", "localhost", "-connect"])
        .arg(site.listen.to_string());
    openssl.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = openssl.spawn().unwrap();
    // It is gone already if its handshake failed.
    let _ = child
        .stdin
        .take()
        .unwrap()
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let said = said_before_the_deadline(child);
    let is_full = said.contains("\nNew, TLSv1.") && said.contains("HTTP/1.");
    assert_eq!(is_full, expected == Expected::Full, "{arguments:?}: {said}");
    assert!(!said.contains("\nReused, "), "{arguments:?}: {said}");
}

/// What a program prints until it ends, or is ended.
fn said_before_the_deadline(child: Child) -> String {
    let (pid, begun) = (child.id(), Instant::now());
    let (ended, is_ended) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if is_ended.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            send(Signal::KILL, pid);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watch.join().unwrap();
    assert!(begun.elapsed() < PATIENCE, "the client never ended");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A network that forwards connections to a server.
pub(super) struct SlowNetwork {
    pub(super) address: SocketAddr,
    forwarded: Arc<[AtomicU64; 2]>,
}

impl SlowNetwork {
    /// Bytes to and from the server.
    pub(super) fn forwarded(&self) -> [u64; 2] {
        [0, 1].map(|at| self.forwarded[at].load(Ordering::Relaxed))
    }
}

/// Forwards connections to a server, and holds what their clients send for a while: the longer a handshake is, the less of it
/// is the time that a process takes to learn of a packet.
pub(super) fn slow_network(server: SocketAddr) -> SlowNetwork {
    let forwarded = Arc::<[AtomicU64; 2]>::default();
    let counts = forwarded.clone();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(upstream) = TcpStream::connect(server) else { return };
            let [client_too, upstream_too] = [&client, &upstream].map(|stream| stream.try_clone().unwrap());
            let [counts_in, counts_out] = [counts.clone(), counts.clone()];
            std::thread::spawn(move || forward(client, upstream, HELD, &counts_in[0]));
            std::thread::spawn(move || forward(upstream_too, client_too, Duration::ZERO, &counts_out[1]));
        }
    });
    SlowNetwork { address, forwarded }
}

fn forward(mut from: TcpStream, mut to: TcpStream, held: Duration, count: &AtomicU64) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        std::thread::sleep(held);
        count.fetch_add(read as u64, Ordering::Relaxed);
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
