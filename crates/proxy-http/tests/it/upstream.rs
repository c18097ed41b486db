//! Upstreams that follow a script.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use proxy_core::Upstream;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use socket2::SockRef;

/// A stream of either kind, as an upstream sees it.
pub(crate) trait UpstreamStream: Read + Write + Send {
    /// The socket, to be shared or shut down.
    fn socket(&self) -> SockRef<'_>;
}

impl UpstreamStream for UnixStream {
    fn socket(&self) -> SockRef<'_> {
        self.into()
    }
}

impl UpstreamStream for TcpStream {
    fn socket(&self) -> SockRef<'_> {
        self.into()
    }
}

impl UpstreamStream for StreamOwned<ServerConnection, TcpStream> {
    fn socket(&self) -> SockRef<'_> {
        (&self.sock).into()
    }
}

/// One connection of an upstream that follows a script.
pub(crate) struct ScriptedConn {
    pub(crate) stream: Box<dyn UpstreamStream>,
    pub(crate) received: Vec<u8>,
    /// Which connection it is, from 0.
    pub(crate) number: usize,
    heads: Arc<Mutex<Vec<String>>>,
}

impl ScriptedConn {
    /// Reads until `is_enough`; false if the proxy ends before.
    pub(crate) fn read_until(&mut self, is_enough: impl Fn(&[u8]) -> bool) -> bool {
        let mut bytes = [0; 16 << 10];
        while !is_enough(&self.received) {
            match self.stream.read(&mut bytes) {
                Ok(n) if n > 0 => self.received.extend_from_slice(&bytes[..n]),
                _ => return false,
            }
        }
        true
    }

    /// Reads the head of a request; `None` if the proxy ends.
    pub(crate) fn head(&mut self) -> Option<String> {
        let end = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if !self.read_until(|bytes| end(bytes).is_some()) {
            return None;
        }
        let at = end(&self.received).unwrap() + 4;
        let head = String::from_utf8(self.received.drain(..at).collect()).unwrap();
        self.heads.lock().unwrap().push(head.clone());
        Some(head)
    }

    /// Reads content of this length.
    pub(crate) fn content(&mut self, length: usize) -> Option<Vec<u8>> {
        self.read_until(|bytes| bytes.len() >= length).then(|| self.received.drain(..length).collect())
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    pub(crate) fn read_no_more(&mut self) {
        self.stream.socket().shutdown(Shutdown::Read).unwrap();
    }

    /// Sends nothing more.
    pub(crate) fn shut_down(&mut self) {
        self.stream.socket().shutdown(Shutdown::Write).unwrap();
    }

    /// Another handle to write by.
    pub(crate) fn writer(&self) -> impl Write + Send + 'static {
        self.stream.socket().try_clone().unwrap()
    }

    /// Waits until the proxy ends the connection.
    pub(crate) fn wait_for_end(&mut self) {
        let _ = self.read_until(|_| false);
    }
}

/// An upstream that runs its script on a thread of its own for each connection, until the test process ends.
pub(crate) struct ScriptedUpstream {
    pub(crate) upstream: Upstream,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
    _dir: Option<tempfile::TempDir>,
}

impl ScriptedUpstream {
    pub(crate) fn unix(script: impl Fn(ScriptedConn) + Send + Sync + 'static) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path: PathBuf = dir.path().join("app.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let accept = move || Box::new(listener.accept().unwrap().0) as Box<dyn UpstreamStream>;
        Self::run(Upstream::unix(path), Some(dir), accept, script)
    }

    pub(crate) fn tcp(script: impl Fn(ScriptedConn) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = listener.local_addr().unwrap().to_string().parse().unwrap();
        let accept = move || Box::new(listener.accept().unwrap().0) as Box<dyn UpstreamStream>;
        Self::run(upstream, None, accept, script)
    }

    /// Over TLS, with a certificate that nobody trusts.
    pub(crate) fn tls(script: impl Fn(ScriptedConn) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = format!("tls://{}", listener.local_addr().unwrap()).parse().unwrap();
        let config = server_config();
        let accept = move || {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let stream = StreamOwned::new(connection, listener.accept().unwrap().0);
            Box::new(stream) as Box<dyn UpstreamStream>
        };
        Self::run(upstream, None, accept, script)
    }

    fn run(
        upstream: Upstream,
        dir: Option<tempfile::TempDir>,
        accept: impl Fn() -> Box<dyn UpstreamStream> + Send + 'static,
        script: impl Fn(ScriptedConn) + Send + Sync + 'static,
    ) -> Self {
        let (connections, heads) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let scripted =
            Self { upstream, connections: Arc::clone(&connections), heads: Arc::clone(&heads), _dir: dir };
        let script = Arc::new(script);
        thread::spawn(move || {
            loop {
                let stream = accept();
                let number = connections.fetch_add(1, Ordering::SeqCst);
                let peer = ScriptedConn { stream, received: Vec::new(), number, heads: Arc::clone(&heads) };
                let script = Arc::clone(&script);
                thread::spawn(move || script(peer));
            }
        });
        scripted
    }

    /// Answers every request with this response, on kept connections.
    pub(crate) fn answering(response: &'static str) -> Self {
        Self::unix(move |mut peer| {
            while peer.head().is_some() {
                peer.send(response);
            }
        })
    }

    /// Answers a request on each connection with 100 MB in pieces of this size; counts the bytes that it could send.
    pub(crate) fn streaming(piece_bytes: usize) -> (Self, Arc<AtomicUsize>) {
        let sent = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&sent);
        let upstream = Self::unix(move |mut peer| {
            peer.head();
            peer.send("HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n");
            for _ in 0..100_000_000 / piece_bytes {
                peer.send(vec![b'x'; piece_bytes]);
                count.fetch_add(piece_bytes, Ordering::Relaxed);
            }
        });
        (upstream, sent)
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Heads of requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

pub(crate) fn server_config() -> Arc<ServerConfig> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key);
    Arc::new(config.unwrap())
}

pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// A path at which nothing listens.
pub(crate) fn nowhere() -> Upstream {
    // Bound and dropped, so that nobody else has it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string().parse().unwrap()
}
