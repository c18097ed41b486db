//! Turns in which handshakes and established connections are ready at once.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::Events;
use records::metrics::ProxyCounter;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::Worker;
use crate::relay::Relay;
use crate::worker::EVENTS_MAX;
use crate::{Certificate, Limits, Proxy, ProxyConfig, Upstream};

/// How long anything may take on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(20);

/// A worker that is driven by hand, between its clients and its upstream.
struct WorkerHarness {
    worker: Worker<Relay>,
    events: Events,
    addr: SocketAddr,
    upstream: UnixListener,
    tls: Arc<ClientConfig>,
    _folder: tempfile::TempDir,
}

/// A client whose bytes are moved by hand, too.
struct ManualClient {
    socket: TcpStream,
    tls: ClientConnection,
}

impl WorkerHarness {
    fn new(limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("app.sock");
        let upstream = UnixListener::bind(&socket).unwrap();
        let certificate = Certificate::generate(&[]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(certificate.leaf_der().to_vec())).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = Arc::new(tls.unwrap().with_root_certificates(roots).with_no_client_auth());
        let listen = vec!["127.0.0.1:0".parse().unwrap()];
        let mut config = ProxyConfig::new(listen, Upstream::unix(socket), certificate);
        config.workers = std::num::NonZeroUsize::MIN;
        config.limits = limits;
        let (addr, worker) = Proxy::bind(config).unwrap().into_first_worker();
        let events = Events::with_capacity(EVENTS_MAX);
        Self { worker, events, addr, upstream, tls, _folder: folder }
    }

    fn connect(&self) -> ManualClient {
        let tls = ClientConnection::new(Arc::clone(&self.tls), ServerName::try_from("localhost").unwrap());
        let socket = TcpStream::connect(self.addr).unwrap();
        socket.set_nonblocking(true).unwrap();
        ManualClient { socket, tls: tls.unwrap() }
    }

    fn count(&self, counter: ProxyCounter) -> u64 {
        self.worker.context.stats.delta.counters[counter]
    }

    fn wait(&mut self) {
        self.worker.wait(&mut self.events, Some(Duration::from_millis(10))).unwrap();
    }

    fn turn(&mut self) {
        self.wait();
        self.worker.serve();
    }

    /// Has the worker take turns until something is so.
    fn turn_until(&mut self, mut is_so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "it does not come to that");
            self.turn();
        }
    }

    /// A client that has shaken hands, and its connection at the upstream.
    fn established(&mut self) -> (ManualClient, UnixStream) {
        let mut client = self.connect();
        client.tls.writer().write_all(b"first").unwrap();
        self.turn_until(|_| {
            client.exchange();
            !client.tls.is_handshaking() && !client.tls.wants_write()
        });
        self.turn_until(|driven| driven.count(ProxyCounter::BytesIn) == 5);
        let (mut upstream, _) = self.upstream.accept().unwrap();
        upstream.read_exact(&mut [0; 5]).unwrap();
        upstream.set_nonblocking(true).unwrap();
        (client, upstream)
    }

    /// This many clients whose `ClientHello`s the worker has noted but not processed.
    fn with_hellos(&mut self, n: usize) -> Vec<ManualClient> {
        let mut clients: Vec<_> = (0..n).map(|_| self.connect()).collect();
        let accepted = self.count(ProxyCounter::Accepted) + n as u64;
        self.turn_until(|driven| driven.count(ProxyCounter::Accepted) == accepted);
        clients.iter_mut().for_each(ManualClient::exchange);
        self.wait_until(|driven| driven.worker.ready.handshakes() == n);
        clients
    }

    /// Has the worker note events, and do nothing about them.
    fn wait_until(&mut self, mut is_so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so(self) {
            assert!(Instant::now() < deadline, "it does not come to that");
            self.wait();
        }
    }
}

impl ManualClient {
    /// Sends pending bytes, and receives available ones.
    fn exchange(&mut self) {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket).unwrap();
        }
        match self.tls.read_tls(&mut self.socket) {
            Ok(_) => drop(self.tls.process_new_packets().unwrap()),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }

    fn is_answered(&self) -> bool {
        self.socket.peek(&mut [0]).is_ok()
    }
}

fn received(upstream: &mut UnixStream) -> Vec<u8> {
    let mut bytes = vec![0; 100];
    let n = upstream.read(&mut bytes).unwrap_or(0);
    bytes.truncate(n);
    bytes
}

#[test]
fn an_established_connection_is_served_before_handshakes_that_came_first() {
    const HANDSHAKES: usize = 8;
    let mut driven = WorkerHarness::new(Limits::default());
    let (mut client, mut upstream) = driven.established();
    let mut waiting = driven.with_hellos(HANDSHAKES);
    client.tls.writer().write_all(b"second").unwrap();
    client.exchange();
    driven.wait_until(|driven| !driven.worker.ready.established.is_empty());

    driven.worker.serve_established();
    assert_eq!(received(&mut upstream), b"second");
    assert!(!waiting.iter().any(ManualClient::is_answered), "a handshake came first");

    // Time is up, yet the handshake that has waited longest is served.
    let answered = |waiting: &[ManualClient]| waiting.iter().filter(|client| client.is_answered()).count();
    for turn in 1..=HANDSHAKES {
        let now = Instant::now();
        driven.worker.serve_handshakes(now, now);
        assert_eq!(answered(&waiting), turn);
    }
    assert_eq!(driven.worker.ready.handshakes(), 0);
    driven.turn_until(|driven| {
        waiting.iter_mut().for_each(ManualClient::exchange);
        driven.count(ProxyCounter::HandshakesFull) == HANDSHAKES as u64 + 1
    });
}

#[test]
fn handshakes_that_are_left_over_go_on_without_an_event() {
    let mut driven = WorkerHarness::new(Limits::default());
    let waiting = driven.with_hellos(3);
    let now = Instant::now();
    driven.worker.serve_handshakes(now, now);
    assert_eq!(driven.worker.ready.handshakes(), 2);
    assert_eq!(driven.worker.timeout(), Some(Duration::ZERO));
    driven.worker.serve_handshakes(now, now + PATIENCE);
    assert!(waiting.iter().all(ManualClient::is_answered), "there was time for all");
}

#[test]
fn clients_that_send_nothing_take_no_place_from_others() {
    let mut driven = WorkerHarness::new(Limits::default());
    let silent: Vec<_> = (0..200).map(|_| driven.connect()).collect();
    driven.established();
    assert_eq!(driven.count(ProxyCounter::Accepted), silent.len() as u64 + 1);
    let connections = driven.worker.connections.iter();
    let with_tls = connections.filter(|(_, connection)| connection.has_begun_tls()).count();
    assert_eq!(with_tls, 1, "silent ones have no memory for TLS, nor have those that are refused");
}

#[test]
fn the_next_connection_is_accepted_in_the_turn_in_which_a_handshake_ends() {
    let limits = Limits { handshakes_max: Some(1), ..Limits::default() };
    let mut driven = WorkerHarness::new(limits);
    let mut clients: Vec<_> = (0..4).map(|_| driven.connect()).collect();
    driven.turn_until(|driven| driven.count(ProxyCounter::Accepted) == 1);
    driven.turn();
    assert_eq!(driven.count(ProxyCounter::Accepted), 1);
    assert!(driven.worker.timeout() > Some(Duration::from_secs(1)), "it looks again before anything happens");
    let last = clients.len() as u64;
    for (client, n) in clients.iter_mut().zip(1..) {
        let fails = n == 2;
        if fails {
            client.socket.write_all(b"no TLS").unwrap();
        }
        driven.turn_until(|driven| {
            if !fails {
                client.exchange();
            }
            driven.count(ProxyCounter::HandshakesFull) + driven.count(ProxyCounter::HandshakesFailed) == n
        });
        assert_eq!(driven.count(ProxyCounter::Accepted), last.min(n + 1), "after {n} handshakes");
    }
}
