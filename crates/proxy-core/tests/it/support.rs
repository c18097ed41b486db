//! What the tests of the proxy share: a proxy with its counts, TLS clients, upstreams.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proxy_core::{Certificate, ListenAddr, Proxy, ProxyConfig, Upstream};
use records::delta::{NamedDelta as _, ProxyDelta};
use records::metrics::{
    CertificateRefusal, ClientCounter, Counters, FullReason, ProxyCounter, ProxyLatency, UpstreamLatency,
};
use records::values::{WorkerCounts, WorkerList};
use rustls::client::{EchGreaseConfig, EchMode};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, ConfigBuilder, RootCertStore, StreamOwned, SupportedProtocolVersion,
    WantsVersions,
};
use socket2::{Domain, SockRef, Socket, Type};

pub(crate) use rustls::version::{TLS12, TLS13};

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Waits for `condition`, and fails with `what` if it does not come true.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A running proxy with everything it has counted so far.
pub(crate) struct TestProxy {
    pub(crate) proxy: Proxy,
    pub(crate) total: ProxyDelta,
    pub(crate) certificate: Vec<u8>,
}

impl TestProxy {
    pub(crate) fn start(upstream: &Upstream) -> Self {
        Self::start_with(upstream, |_| {})
    }

    pub(crate) fn start_with(upstream: &Upstream, change: impl FnOnce(&mut ProxyConfig)) -> Self {
        let certificate = Certificate::generate(&[]).unwrap();
        let leaf = certificate.leaf_der().to_vec();
        let listen: ListenAddr = "127.0.0.1:0".parse().unwrap();
        let mut config = ProxyConfig::new(vec![listen], upstream.clone(), certificate);
        config.workers = 2.try_into().unwrap();
        change(&mut config);
        Self { proxy: Proxy::start(config).unwrap(), total: ProxyDelta::default(), certificate: leaf }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.proxy.local_addrs()[0]
    }

    pub(crate) fn collect(&mut self) {
        self.proxy.collect(&mut self.total, PATIENCE);
    }

    pub(crate) fn count(&mut self, counter: ProxyCounter) -> u64 {
        self.collect();
        self.total.counters[counter]
    }

    /// Waits until `counter` has reached `n`.
    pub(crate) fn expect_at_least(&mut self, counter: ProxyCounter, n: u64) {
        eventually(&format!("{counter:?} reaches {n}"), || self.count(counter) >= n);
    }

    /// Waits until `counter` has reached `n`, and checks that it does not go beyond.
    pub(crate) fn expect(&mut self, counter: ProxyCounter, n: u64) {
        self.expect_at_least(counter, n);
        assert_eq!(self.total.counters[counter], n, "{counter:?}");
    }

    /// Sums over all clients.
    pub(crate) fn clients(&self) -> (Counters<ClientCounter>, i64) {
        let (mut sum, mut open) = (Counters::default(), 0);
        for client in &self.total.clients {
            sum.add(&client.counters);
            open += client.open_change;
        }
        (sum, open)
    }

    /// Drains, and checks what must hold of the totals of any proxy.
    pub(crate) fn finish(mut self) -> ProxyDelta {
        self.proxy.drain();
        assert!(self.proxy.wait(PATIENCE), "the drain does not end");
        self.collect();
        let total = std::mem::take(&mut self.total);
        let (sum, open) = Self { total: total.clone(), ..self }.clients();
        let count = |counter| total.counters[counter];
        assert_eq!(count(ProxyCounter::Accepted), count(ProxyCounter::Closed));
        assert_eq!(open, 0, "connections that clients still have open");
        for (of_clients, of_proxy) in [
            (ClientCounter::Connections, ProxyCounter::Accepted),
            (ClientCounter::BytesIn, ProxyCounter::BytesIn),
            (ClientCounter::BytesOut, ProxyCounter::BytesOut),
            (ClientCounter::HandshakesFull, ProxyCounter::HandshakesFull),
            (ClientCounter::HandshakesResumed, ProxyCounter::HandshakesResumed),
            (ClientCounter::Exchanges, ProxyCounter::Exchanges),
        ] {
            assert_eq!(sum[of_clients], count(of_proxy), "{of_clients:?}");
        }
        if let [upstream] = total.upstreams.all() {
            let of_upstream = upstream.latency(UpstreamLatency::Connect);
            assert_eq!(
                total.latencies[ProxyLatency::Connect].to_sparse(),
                of_upstream,
                "the same connections"
            );
        }
        let mut workers = WorkerList::default();
        total.workers.iter().for_each(|worker| workers.add(worker));
        let of_workers = |of: fn(&WorkerCounts) -> u64| workers.iter().map(of).sum::<u64>();
        assert!(workers.iter().all(|worker| worker.open == 0 && worker.cpu_us > 0), "{workers:?}");
        assert_eq!(of_workers(|worker| worker.accepted), count(ProxyCounter::Accepted));
        assert_eq!(of_workers(|worker| worker.handshakes_full), count(ProxyCounter::HandshakesFull));
        assert_eq!(of_workers(|worker| worker.handshakes_resumed), count(ProxyCounter::HandshakesResumed));
        let causes = [
            ProxyCounter::FailedTimeout,
            ProxyCounter::FailedEof,
            ProxyCounter::FailedAlert,
            ProxyCounter::FailedNotTls,
            ProxyCounter::FailedName,
            ProxyCounter::FailedIncompatible,
            ProxyCounter::FailedOther,
            ProxyCounter::RefusedAddress,
            ProxyCounter::RefusedConnections,
            ProxyCounter::RefusedConnectionRate,
            ProxyCounter::RefusedHandshakeRate,
            ProxyCounter::RefusedMemory,
        ];
        let of_certificates = CertificateRefusal::ALL.map(|(_, counter, _)| counter);
        let by_cause = total.counters.sum(&causes) + total.counters.sum(&of_certificates);
        assert_eq!(by_cause, count(ProxyCounter::HandshakesFailed));
        let errors = [
            ProxyCounter::HandshakesFailed,
            ProxyCounter::UpstreamConnectsFailed,
            ProxyCounter::UpstreamBroken,
            ProxyCounter::ClientBroken,
            ProxyCounter::IdleTimeouts,
            ProxyCounter::SendTimeouts,
            ProxyCounter::PendingCuts,
        ];
        assert_eq!(sum[ClientCounter::Errors], total.counters.sum(&errors));
        let handshakes = count(ProxyCounter::HandshakesFull) + count(ProxyCounter::HandshakesResumed);
        let others = count(ProxyCounter::HandshakesFailed) + count(ProxyCounter::Passed);
        assert_eq!(count(ProxyCounter::Accepted), handshakes + others);
        let reasons = FullReason::ALL.map(|(_, counter, _)| counter);
        assert_eq!(total.tls.counters.sum(&reasons), count(ProxyCounter::HandshakesFull), "{:?}", total.tls);
        total
    }

    /// How clients speak to this proxy; sessions are resumed within one configuration.
    pub(crate) fn client(&self, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
        let config = client_builder().with_protocol_versions(&[version]).unwrap();
        Arc::new(config.with_root_certificates(self.roots()).with_no_client_auth())
    }

    /// A client of TLS 1.3 that pretends to encrypt its true `ClientHello`.
    pub(crate) fn client_with_grease_ech(&self) -> Arc<ClientConfig> {
        let suite = rustls::crypto::aws_lc_rs::hpke::ALL_SUPPORTED_SUITES[0];
        let (key, _) = suite.generate_key_pair().unwrap();
        let grease = EchMode::Grease(EchGreaseConfig::new(suite, key));
        let config = client_builder().with_ech(grease).unwrap();
        Arc::new(config.with_root_certificates(self.roots()).with_no_client_auth())
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(self.certificate.clone())).unwrap();
        roots
    }

    pub(crate) fn tcp(&self) -> TcpStream {
        tcp_to(self.addr())
    }

    pub(crate) fn connect(&self, config: &Arc<ClientConfig>) -> Tls {
        tls_over(self.tcp(), config)
    }
}

fn client_builder() -> ConfigBuilder<ClientConfig, WantsVersions> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
}

pub(crate) fn tcp_to(addr: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(addr).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

/// Connects from this address of the host.
pub(crate) fn tcp_from(source: &str, addr: SocketAddr) -> TcpStream {
    try_tcp_from(source, addr).unwrap()
}

/// The same; the proxy may have accepted and reset the connection before this call knows that it was established.
pub(crate) fn try_tcp_from(source: &str, addr: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::new(source.parse().unwrap(), 0).into()).unwrap();
    socket.connect(&addr.into())?;
    let socket = TcpStream::from(socket);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    Ok(socket)
}

pub(crate) fn tls_over(socket: TcpStream, config: &Arc<ClientConfig>) -> Tls {
    tls_named(socket, config, "localhost")
}

pub(crate) fn tls_named(socket: TcpStream, config: &Arc<ClientConfig>, name: &str) -> Tls {
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), socket)
}

/// Sends `request`, and reads an answer of the same length.
pub(crate) fn echo(tls: &mut Tls, request: &[u8]) {
    tls.write_all(request).unwrap();
    let mut answer = vec![0; request.len()];
    tls.read_exact(&mut answer).unwrap();
    assert!(answer == request, "the answer is not the request");
}

/// Ends the client's direction with a `close_notify` and a FIN.
pub(crate) fn end(tls: &mut Tls) {
    tls.conn.send_close_notify();
    tls.flush().unwrap();
    tls.sock.shutdown(Shutdown::Write).unwrap();
}

/// Reads to the end: the bytes, and whether the end was said by a `close_notify`.
pub(crate) fn read_all(tls: &mut Tls) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    match tls.read_to_end(&mut bytes) {
        Ok(_) => (bytes, true),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => (bytes, false),
        Err(error) => panic!("reading failed after {} bytes: {error}", bytes.len()),
    }
}

/// Makes the socket's close a reset.
pub(crate) fn reset(socket: &TcpStream) {
    SockRef::from(socket).set_linger(Some(Duration::ZERO)).unwrap();
}

/// An address that nobody else can take, and that refuses until its socket listens.
pub(crate) fn reserved_address() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, addr)
}

/// A stream of either kind, as an upstream sees it.
pub(crate) trait TestStream: Read + Write + Send + 'static {
    fn end(&self);
}

impl TestStream for TcpStream {
    fn end(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

impl TestStream for UnixStream {
    fn end(&self) {
        self.shutdown(Shutdown::Write).unwrap();
    }
}

/// An upstream that runs `serve` on a thread of its own for each connection, until the test process ends.
pub(crate) struct TestUpstream {
    pub(crate) upstream: Upstream,
    pub(crate) received: Arc<AtomicU64>,
    _dir: Option<tempfile::TempDir>,
}

impl TestUpstream {
    pub(crate) fn unix(serve: fn(&mut dyn TestStream, &AtomicU64)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, counter) = (stream.unwrap(), Arc::clone(&counter));
                thread::spawn(move || serve(&mut stream, &counter));
            }
        });
        Self { upstream: Upstream::unix(path), received, _dir: Some(dir) }
    }

    pub(crate) fn tcp(serve: fn(&mut dyn TestStream, &AtomicU64)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = listener.local_addr().unwrap().to_string().parse().unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, counter) = (stream.unwrap(), Arc::clone(&counter));
                thread::spawn(move || serve(&mut stream, &counter));
            }
        });
        Self { upstream, received, _dir: None }
    }
}

/// Sends back whatever comes, and ends when the client has ended.
pub(crate) fn serve_echo(stream: &mut dyn TestStream, received: &AtomicU64) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(n) = stream.read(&mut buffer) {
        if n == 0 {
            return stream.end();
        }
        received.fetch_add(n as u64, Ordering::Relaxed);
        if stream.write_all(&buffer[..n]).is_err() {
            return;
        }
    }
}

/// Bytes that repeat nowhere near each other, so that a loss or a swap shows.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
