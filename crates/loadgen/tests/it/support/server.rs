//! A server on blocking threads that does as a script says, and counts for itself.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use records::values::TlsVersion;
use rustls::{HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

/// What the server does with a request.
pub(crate) enum ServerAction {
    /// Writes these bytes, and closes if the request asked for it.
    Answer(Vec<u8>),
    /// Writes the first bytes, waits, and writes the second.
    AnswerSlowly(Vec<u8>, Duration, Vec<u8>),
    /// Writes these bytes, and closes in order.
    AnswerAndClose(Vec<u8>),
    /// Writes these bytes, and drops TCP without closing TLS.
    AnswerAndCut(Vec<u8>),
    /// Writes these bytes, and resets the connection.
    AnswerAndReset(Vec<u8>),
    /// Writes the first bytes, and then the second again and again, while the client takes them.
    AnswerForever(Vec<u8>, Vec<u8>),
    /// Says nothing, and waits for the client to go.
    Stall,
}

impl ServerAction {
    /// A good answer of so many bytes.
    pub(crate) fn ok(bytes: usize) -> Self {
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + bytes, b'x');
        Self::Answer(answer)
    }
}

/// A request as the script sees it.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedRequest {
    /// Number of the request among all, from 0.
    pub(crate) nth: u64,
    /// Number of the request on its connection, from 0.
    pub(crate) on_connection: u64,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) host: String,
    pub(crate) body_bytes: u64,
    pub(crate) wants_close: bool,
}

/// What the server saw of one address, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerCounts {
    pub(crate) connections: u64,
    pub(crate) full: u64,
    pub(crate) resumed: u64,
    /// Connections that brought early data which was taken.
    pub(crate) early: u64,
    pub(crate) requests: u64,
    /// Plaintext received.
    pub(crate) bytes_in: u64,
    /// Plaintext sent.
    pub(crate) bytes_out: u64,
    /// Connections that the client ended in order: with a `close_notify` if there is TLS.
    pub(crate) clean_ends: u64,
}

pub(crate) struct TestServer {
    address: SocketAddr,
    tls: Vec<Arc<ServerConfig>>,
    certificate: Option<Vec<u8>>,
    shared: Arc<SharedServerState>,
    acceptor: Option<JoinHandle<()>>,
}

type Script = dyn Fn(&ScriptedRequest) -> ServerAction + Send + Sync;

struct SharedServerState {
    script: Box<Script>,
    seen: Mutex<BTreeMap<IpAddr, ServerCounts>>,
    requests: AtomicU64,
    open: AtomicU64,
    stopped: AtomicBool,
}

impl TestServer {
    pub(crate) fn plain(script: impl Fn(&ScriptedRequest) -> ServerAction + Send + Sync + 'static) -> Self {
        Self::start(Vec::new(), None, Box::new(script))
    }

    /// TLS with a certificate of its own for localhost, and stateless tickets.
    pub(crate) fn tls(
        version: TlsVersion,
        script: impl Fn(&ScriptedRequest) -> ServerAction + Send + Sync + 'static,
    ) -> Self {
        let (mut config, certificate) = tls_config(version);
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
        Self::start(vec![Arc::new(config)], Some(certificate), Box::new(script))
    }

    /// TLS 1.3 that takes early data of up to so many bytes: always, or only on the first connection of all, though it
    /// resumes on the others too.
    pub(crate) fn early(
        most: u32,
        accepts: bool,
        script: impl Fn(&ScriptedRequest) -> ServerAction + Send + Sync + 'static,
    ) -> Self {
        let (mut config, certificate) = tls_config(TlsVersion::V13);
        config.session_storage = rustls::server::ServerSessionMemoryCache::new(1_000);
        config.max_early_data_size = most;
        // A session of another application protocol may be resumed, and early data in it not be taken.
        let mut other = config.clone();
        other.alpn_protocols = vec![b"http/1.1".to_vec()];
        let configs = if accepts { vec![config] } else { vec![config, other] };
        Self::start(configs.into_iter().map(Arc::new).collect(), Some(certificate), Box::new(script))
    }

    fn start(tls: Vec<Arc<ServerConfig>>, certificate: Option<Vec<u8>>, script: Box<Script>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(SharedServerState {
            script,
            seen: Mutex::default(),
            requests: AtomicU64::new(0),
            open: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        });
        let (for_acceptor, tls_for_acceptor) = (Arc::clone(&shared), tls.clone());
        let acceptor = std::thread::spawn(move || accept(&listener, &tls_for_acceptor, &for_acceptor));
        Self { address, tls, certificate, shared, acceptor: Some(acceptor) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let scheme = if self.tls.is_empty() { "http" } else { "https" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// The certificate in DER, with TLS.
    pub(crate) fn certificate(&self) -> Option<Vec<u8>> {
        self.certificate.clone()
    }

    pub(crate) fn certificate_pem(&self) -> String {
        let base64 = base64::engine::general_purpose::STANDARD.encode(self.certificate().unwrap());
        format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n")
    }

    /// What was seen of each address, once every connection is over.
    pub(crate) fn seen_by_address(&self) -> BTreeMap<IpAddr, ServerCounts> {
        super::eventually("every connection is over", || self.shared.open.load(Ordering::SeqCst) == 0);
        self.shared.seen.lock().unwrap().clone()
    }

    /// What was seen in all, once every connection is over.
    pub(crate) fn seen(&self) -> ServerCounts {
        self.seen_by_address().values().fold(ServerCounts::default(), |all, one| ServerCounts {
            connections: all.connections + one.connections,
            full: all.full + one.full,
            resumed: all.resumed + one.resumed,
            early: all.early + one.early,
            requests: all.requests + one.requests,
            bytes_in: all.bytes_in + one.bytes_in,
            bytes_out: all.bytes_out + one.bytes_out,
            clean_ends: all.clean_ends + one.clean_ends,
        })
    }

    /// Requests received so far.
    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().unwrap();
        }
    }
}

/// One configuration of TLS after the other serves a connection, where there are several.
fn accept(listener: &TcpListener, tls: &[Arc<ServerConfig>], shared: &Arc<SharedServerState>) {
    let mut configs = tls.iter().cycle();
    for stream in listener.incoming() {
        if shared.stopped.load(Ordering::SeqCst) {
            return;
        }
        let (stream, tls, shared) = (stream.unwrap(), configs.next().cloned(), Arc::clone(shared));
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_nodelay(true).unwrap();
        shared.open.fetch_add(1, Ordering::SeqCst);
        std::thread::spawn(move || {
            let peer = stream.peer_addr().unwrap().ip();
            let mut seen = ServerCounts { connections: 1, ..ServerCounts::default() };
            // A client that goes away is what many tests are about.
            let _ = serve(stream, tls, &shared, &mut seen);
            shared.add(peer, seen);
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

impl SharedServerState {
    fn add(&self, peer: IpAddr, new: ServerCounts) {
        let mut all = self.seen.lock().unwrap();
        let seen = all.entry(peer).or_default();
        seen.connections += new.connections;
        seen.full += new.full;
        seen.resumed += new.resumed;
        seen.early += new.early;
        seen.requests += new.requests;
        seen.bytes_in += new.bytes_in;
        seen.bytes_out += new.bytes_out;
        seen.clean_ends += new.clean_ends;
    }
}

/// A connection, with TLS or without.
enum ServerStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl ServerStream {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref(),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.write_all(bytes),
            Self::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        if let Self::Tls(tls) = self {
            tls.conn.send_close_notify();
            tls.flush()?;
        }
        self.tcp().shutdown(Shutdown::Write)
    }
}

fn serve(
    mut tcp: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    shared: &SharedServerState,
    seen: &mut ServerCounts,
) -> io::Result<()> {
    let mut unread = Vec::new();
    let mut stream = match tls {
        None => ServerStream::Plain(tcp),
        Some(config) => {
            let mut connection = ServerConnection::new(config).unwrap();
            while connection.is_handshaking() {
                connection.complete_io(&mut tcp)?;
            }
            match connection.handshake_kind().unwrap() {
                HandshakeKind::Resumed => seen.resumed += 1,
                _ => seen.full += 1,
            }
            if let Some(mut early) = connection.early_data() {
                early.read_to_end(&mut unread)?;
                // A server may also accept that there is none.
                seen.early += u64::from(!unread.is_empty());
                seen.bytes_in += unread.len() as u64;
            }
            ServerStream::Tls(Box::new(StreamOwned::new(connection, tcp)))
        }
    };
    for on_connection in 0.. {
        let Some(exchange) = read_request(&mut stream, &mut unread, shared, seen, on_connection)? else {
            seen.clean_ends += 1;
            return stream.close();
        };
        seen.requests += 1;
        let mut answer = |stream: &mut ServerStream, bytes: &[u8]| {
            stream.write_all(bytes)?;
            seen.bytes_out += bytes.len() as u64;
            io::Result::Ok(())
        };
        match (shared.script)(&exchange) {
            ServerAction::Answer(bytes) if !exchange.wants_close => answer(&mut stream, &bytes)?,
            ServerAction::Answer(bytes) | ServerAction::AnswerAndClose(bytes) => {
                answer(&mut stream, &bytes)?;
                stream.close()?;
                return drain(&mut stream, seen);
            }
            ServerAction::AnswerSlowly(first, wait, second) => {
                answer(&mut stream, &first)?;
                std::thread::sleep(wait);
                answer(&mut stream, &second)?;
            }
            ServerAction::AnswerAndCut(bytes) => return answer(&mut stream, &bytes),
            ServerAction::AnswerAndReset(bytes) => {
                answer(&mut stream, &bytes)?;
                socket2::SockRef::from(stream.tcp()).set_linger(Some(Duration::ZERO))?;
                return Ok(());
            }
            ServerAction::AnswerForever(first, again) => {
                answer(&mut stream, &first)?;
                loop {
                    answer(&mut stream, &again)?;
                }
            }
            ServerAction::Stall => return drain(&mut stream, seen),
        }
    }
    Ok(())
}

/// Reads on until the client has closed.
fn drain(stream: &mut ServerStream, seen: &mut ServerCounts) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            len => seen.bytes_in += len as u64,
        }
    }
    seen.clean_ends += 1;
    Ok(())
}

/// Reads one request; `None` at a clean end between requests.
fn read_request(
    stream: &mut ServerStream,
    unread: &mut Vec<u8>,
    shared: &SharedServerState,
    seen: &mut ServerCounts,
    on_connection: u64,
) -> io::Result<Option<ScriptedRequest>> {
    let mut buffer = vec![0; 64 * 1024];
    let mut more = |unread: &mut Vec<u8>| {
        let len = stream.read(&mut buffer)?;
        seen.bytes_in += len as u64;
        unread.extend_from_slice(&buffer[..len]);
        io::Result::Ok(len)
    };
    let head_len = loop {
        if let Some(at) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if more(unread)? == 0 {
            assert!(unread.is_empty(), "the client stopped within a head");
            return Ok(None);
        }
    };
    let head = String::from_utf8(unread[..head_len].to_vec()).unwrap();
    let field = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    };
    let body_bytes: usize = field("content-length").map_or(0, |value| value.parse().unwrap());
    while unread.len() < head_len + body_bytes {
        if more(unread)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    unread.drain(..head_len + body_bytes);
    let mut words = head.split(' ');
    Ok(Some(ScriptedRequest {
        nth: shared.requests.fetch_add(1, Ordering::SeqCst),
        on_connection,
        method: words.next().unwrap().to_owned(),
        path: words.next().unwrap().to_owned(),
        host: field("host").unwrap(),
        body_bytes: body_bytes as u64,
        wants_close: field("connection").is_some_and(|value| value == "close"),
    }))
}

/// A configuration with a certificate of its own for localhost, and that certificate in DER.
fn tls_config(version: TlsVersion) -> (ServerConfig, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let versions = match version {
        TlsVersion::V12 => &[&rustls::version::TLS12],
        TlsVersion::V13 => &[&rustls::version::TLS13],
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.send_tls13_tickets = 1;
    (config, made.cert.der().to_vec())
}
