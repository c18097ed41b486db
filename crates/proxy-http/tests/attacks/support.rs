//! A proxy before an upstream that notes each byte, and TLS clients that send any.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use proxy_core::{Certificate, Proxy, ProxyConfig, Tls, Upstream};
use proxy_http::HttpConfig;
use records::delta::ProxyDelta;
use records::metrics::{HttpCounter, ProxyCounter};

use crate::common;
pub(crate) use crate::common::{PATIENCE, TlsStream, eventually};

/// A request as it reached the upstream, byte by byte.
#[derive(Clone, Debug)]
pub(crate) struct RawRequest {
    pub(crate) head: Vec<u8>,
    /// Content as it was framed, with the lines of chunks.
    pub(crate) content: Vec<u8>,
}

impl RawRequest {
    /// The lines of the head; a CR or LF that does not end one with the other, or a NUL, is a failure.
    pub(crate) fn lines(&self) -> Vec<&str> {
        let head = std::str::from_utf8(&self.head).expect("a head in UTF-8");
        let lines: Vec<&str> = head.strip_suffix("\r\n\r\n").expect("a whole head").split("\r\n").collect();
        for line in &lines {
            assert!(!line.contains(['\r', '\n', '\0']) && !line.starts_with([' ', '\t']), "{head:?}");
        }
        lines
    }

    /// The values of a field.
    pub(crate) fn values(&self, name: &str) -> Vec<&str> {
        let fields = self.lines().into_iter().skip(1).map(|line| line.split_once(':').expect("a field"));
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
    }

    /// The fields that say where the request ends.
    pub(crate) fn framing(&self) -> Vec<String> {
        ["content-length", "transfer-encoding"]
            .iter()
            .flat_map(|name| self.values(name).into_iter().map(move |value| format!("{name}: {value}")))
            .collect()
    }

    /// Method and target.
    pub(crate) fn target(&self) -> &str {
        self.lines()[0].strip_suffix(" HTTP/1.1").expect("a request of HTTP/1.1")
    }
}

/// What an upstream sends for a request.
pub(crate) enum UpstreamResponse {
    /// And waits for the next request.
    Bytes(Vec<u8>),
    /// And closes the connection.
    Last(Vec<u8>),
    /// A head, and then this piece again and again, in writes of its own.
    Endless(Vec<u8>, Vec<u8>),
}

impl UpstreamResponse {
    pub(crate) fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bytes(bytes.into())
    }
}

pub(crate) type Respond = fn(&RawRequest) -> UpstreamResponse;

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A proxy in front of an upstream.
pub(crate) struct AttackTarget {
    proxy: Proxy,
    total: ProxyDelta,
    certificate: Vec<u8>,
    received: Arc<Mutex<Vec<RawRequest>>>,
    connections: Arc<Mutex<usize>>,
    endless: Arc<EndlessResponses>,
    _folder: tempfile::TempDir,
}

/// What became of [`UpstreamResponse::Endless`].
#[derive(Debug, Default)]
pub(crate) struct EndlessResponses {
    pub(crate) sent_bytes: AtomicUsize,
    /// Connections on which the proxy takes nothing more.
    pub(crate) stopped: AtomicUsize,
}

pub(crate) fn respond_ok(_: &RawRequest) -> UpstreamResponse {
    UpstreamResponse::bytes(OK)
}

impl AttackTarget {
    pub(crate) fn start(respond: Respond) -> Self {
        Self::start_with(respond, |_, _| {})
    }

    pub(crate) fn start_with(
        respond: Respond,
        change: impl FnOnce(&mut ProxyConfig, &mut HttpConfig),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let endless = Arc::new(EndlessResponses::default());
        let (requests, opened) = (Arc::clone(&received), Arc::clone(&connections));
        let endless_sent = Arc::clone(&endless);
        thread::spawn(move || {
            for stream in listener.incoming() {
                *opened.lock().unwrap() += 1;
                let (stream, requests) = (stream.unwrap(), Arc::clone(&requests));
                let endless = Arc::clone(&endless_sent);
                thread::spawn(move || serve(&stream, &requests, respond, &endless));
            }
        });
        let (proxy, certificate) = start_proxy(path, change);
        let total = ProxyDelta::default();
        Self { proxy, total, certificate, received, connections, endless, _folder: folder }
    }

    /// A connection whose client offers one application protocol.
    pub(crate) fn connect(&self, alpn: &str) -> TlsStream {
        common::connect(self.proxy.local_addrs()[0], common::client_config(&self.certificate, &[alpn]))
    }

    /// Takes what has reached the upstream.
    pub(crate) fn take_received(&self) -> Vec<RawRequest> {
        std::mem::take(&mut self.received.lock().unwrap())
    }

    /// Connections that the upstream has accepted.
    pub(crate) fn upstream_connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }

    pub(crate) fn count(&mut self, counter: HttpCounter) -> u64 {
        self.proxy.collect(&mut self.total, PATIENCE);
        self.total.http.as_ref().map_or(0, |http| http.counters[counter])
    }

    pub(crate) fn count_of_proxy(&mut self, counter: ProxyCounter) -> u64 {
        self.proxy.collect(&mut self.total, PATIENCE);
        self.total.counters[counter]
    }

    /// How the upstream gets on with its endless responses.
    pub(crate) fn endless(&self) -> &EndlessResponses {
        &self.endless
    }

    /// Whether another client is served, over a new connection.
    pub(crate) fn serves(&self) -> bool {
        let mut tls = self.connect("http/1.1");
        tls.write_all(b"GET /alive HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
        read_to_end(&mut tls).starts_with(b"HTTP/1.1 200 ")
    }
}

/// A proxy with one worker, and its certificate.
pub(crate) fn start_proxy(
    upstream: PathBuf,
    change: impl FnOnce(&mut ProxyConfig, &mut HttpConfig),
) -> (Proxy, Vec<u8>) {
    let certificate = Certificate::generate(&[]).unwrap();
    let leaf = certificate.leaf_der().to_vec();
    let mut tls = Tls::new(certificate);
    tls.settings.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()];
    let mut config = ProxyConfig::new(vec!["127.0.0.1:0".parse().unwrap()], Upstream::unix(upstream), tls);
    config.workers = 1.try_into().unwrap();
    let mut http = HttpConfig::default();
    change(&mut config, &mut http);
    let proxy = proxy_http::bind(config, http, proxy_core::ListenerSource::Bind).unwrap().start().unwrap();
    (proxy, leaf)
}

/// Reads to the end, clean or not.
pub(crate) fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

/// Reads a message of HTTP/1.1 with a length or chunks; `None` at the end of the stream.
pub(crate) fn read_message(reader: &mut impl BufRead) -> Option<RawRequest> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head).ok()? == 0 {
            return None;
        }
    }
    let mut message = RawRequest { head, content: Vec::new() };
    let framing = message.framing();
    if let Some(length) = framing.iter().find_map(|field| field.strip_prefix("content-length: ")) {
        message.content.resize(length.parse().ok()?, 0);
        reader.read_exact(&mut message.content).ok()?;
    } else if framing.iter().any(|field| field.starts_with("transfer-encoding")) {
        let is_whole = |content: &[u8]| {
            content.ends_with(b"\r\n\r\n")
                && (content.starts_with(b"0\r\n") || content.windows(5).any(|at| at == b"\r\n0\r\n"))
        };
        while !is_whole(&message.content) {
            if reader.read_until(b'\n', &mut message.content).ok()? == 0 {
                return None;
            }
        }
    }
    Some(message)
}

/// Answers each request of a connection.
pub(crate) fn serve(
    mut stream: &UnixStream,
    requests: &Mutex<Vec<RawRequest>>,
    respond: Respond,
    endless: &EndlessResponses,
) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_message(&mut reader) {
        let response = respond(&request);
        requests.lock().unwrap().push(request);
        match response {
            UpstreamResponse::Bytes(bytes) if stream.write_all(&bytes).is_ok() => {}
            UpstreamResponse::Bytes(_) => return,
            UpstreamResponse::Last(bytes) => {
                let _ = stream.write_all(&bytes);
                return;
            }
            UpstreamResponse::Endless(head, piece) => {
                let _ = stream.write_all(&head);
                return send_endlessly(stream, &piece, endless);
            }
        }
    }
}

/// Sends until the proxy takes nothing for a while, or closes.
fn send_endlessly(mut stream: &UnixStream, piece: &[u8], endless: &EndlessResponses) {
    stream.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    loop {
        match stream.write_all(piece) {
            Ok(()) => endless.sent_bytes.fetch_add(piece.len(), Ordering::Relaxed),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                endless.stopped.fetch_add(1, Ordering::Relaxed);
                // It stays open until the proxy closes it.
                stream.set_read_timeout(None).unwrap();
                drop(read_to_end(&mut stream));
                return;
            }
            Err(_) => return,
        };
        // A pause, so that the proxy reads little at a time.
        thread::sleep(Duration::from_micros(20));
    }
}
