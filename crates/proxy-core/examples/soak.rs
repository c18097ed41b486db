//! Sends a GiB each way through a proxy, over both versions of TLS and both kinds of upstream, and compares every byte
//! with what was sent: `just soak`, or `just soak 64` for so many MiB.

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::time::Instant;

use proxy_core::{Certificate, Proxy, ProxyConfig, Upstream};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const CHUNK_BYTES: usize = 100_003;

type Failure = Box<dyn Error + Send + Sync>;

/// Bytes that repeat nowhere near each other, so that a loss or a swap shows (xorshift64).
struct Pattern(u64);

impl Pattern {
    fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            *byte = self.0.to_le_bytes()[3];
        }
    }
}

fn send(sink: &mut impl Write, mut left: u64) -> io::Result<()> {
    let (mut pattern, mut chunk) = (Pattern::new(), vec![0; CHUNK_BYTES]);
    while left > 0 {
        let n = left.min(CHUNK_BYTES as u64) as usize;
        pattern.fill(&mut chunk[..n]);
        sink.write_all(&chunk[..n])?;
        left -= n as u64;
    }
    sink.flush()
}

/// Reads to the end, and fails unless it is what was sent.
fn receive(source: &mut impl Read, bytes: u64) -> io::Result<()> {
    let (mut pattern, mut received) = (Pattern::new(), 0);
    let (mut chunk, mut expected) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
    loop {
        let n = source.read(&mut chunk)?;
        pattern.fill(&mut expected[..n]);
        if chunk[..n] != expected[..n] {
            return Err(io::Error::other(format!("what came after {received} bytes is not what was sent")));
        }
        received += n as u64;
        if n == 0 {
            let is_whole = received == bytes;
            return is_whole
                .then_some(())
                .ok_or_else(|| io::Error::other(format!("{received} bytes of {bytes}")));
        }
    }
}

/// A stream of either kind, as an upstream sees it.
trait SoakStream: Read + Write {
    fn end(&self) -> io::Result<()>;
}

impl SoakStream for TcpStream {
    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl SoakStream for UnixStream {
    fn end(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Sends all of it to whoever asks with `d`; of whoever else takes all of it and says that it is whole.
fn serve(mut stream: impl SoakStream, bytes: u64) -> io::Result<()> {
    let mut wish = [0];
    stream.read_exact(&mut wish)?;
    if wish == *b"d" {
        send(&mut stream, bytes)?;
    } else {
        receive(&mut stream, bytes)?;
        stream.write_all(b"whole")?;
    }
    stream.end()
}

fn download(tls: &mut (impl Read + Write), bytes: u64) -> io::Result<()> {
    tls.write_all(b"d")?;
    receive(tls, bytes)
}

fn upload(tls: &mut StreamOwned<ClientConnection, TcpStream>, bytes: u64) -> io::Result<()> {
    tls.write_all(b"u")?;
    send(tls, bytes)?;
    // Only this direction ends: the answer comes after it.
    tls.conn.send_close_notify();
    tls.flush()?;
    tls.sock.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    tls.read_to_string(&mut answer)?;
    if answer == "whole" { Ok(()) } else { Err(io::Error::other("the upstream did not get what was sent")) }
}

fn main() -> Result<(), Failure> {
    let mib: u64 = std::env::args().nth(1).map_or(Ok(1024), |text| text.parse())?;
    let bytes = mib << 20;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("app.sock");
    let (unix, tcp) = (UnixListener::bind(&path)?, TcpListener::bind("127.0.0.1:0")?);
    let upstreams = [Upstream::unix(path), tcp.local_addr()?.to_string().parse()?];
    std::thread::spawn(move || unix.incoming().flatten().try_for_each(|stream| serve(stream, bytes)));
    std::thread::spawn(move || tcp.incoming().flatten().try_for_each(|stream| serve(stream, bytes)));
    for upstream in upstreams {
        let certificate = Certificate::generate(&[])?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(certificate.leaf_der().to_vec()))?;
        let proxy =
            Proxy::start(ProxyConfig::new(vec!["127.0.0.1:0".parse()?], upstream.clone(), certificate))?;
        for version in [&TLS12, &TLS13] {
            let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
            let config = ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])?
                .with_root_certificates(roots.clone())
                .with_no_client_auth();
            let config = Arc::new(config);
            let connect = || -> Result<_, Failure> {
                let name = ServerName::try_from("localhost")?;
                let connection = ClientConnection::new(Arc::clone(&config), name)?;
                Ok(StreamOwned::new(connection, TcpStream::connect(proxy.local_addrs()[0])?))
            };
            let began_at = Instant::now();
            download(&mut connect()?, bytes)?;
            upload(&mut connect()?, bytes)?;
            let took = began_at.elapsed();
            writeln!(
                io::stdout(),
                "{mib} MiB each way over {:?} to {upstream}: every byte as sent, {took:.1?}",
                version.version
            )?;
        }
        proxy.drain();
        proxy.join()?;
    }
    Ok(())
}
