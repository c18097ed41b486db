//! Mixed load of HTTP/1.1 and HTTP/2 before an upstream that restarts again and again: `just soak-http`, or
//! `just soak-http 120` for so many seconds.
//!
//! A restart closes every connection of the upstream at once, with requests in flight; its socket keeps listening, as one
//! of a service manager does. Nothing may fail but requests in flight that may not be sent twice. Clients and proxy must
//! count the same.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::cell::Cell;
use std::error::Error;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request, StatusCode};
use proxy_core::{Certificate, Proxy, ProxyConfig, Tls, Upstream};
use proxy_http::HttpConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use telemetry::{HttpCounter, ProxyDelta, RequestFailure};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::net::{TcpStream, UnixListener};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Time between two restarts of the upstream.
const RESTART_EVERY: Duration = Duration::from_secs(20);
/// Connections that speak HTTP/1.1, one request at a time.
const CLIENTS1: usize = 32;
/// Connections that speak HTTP/2, and streams of each.
const CLIENTS2: (usize, usize) = (8, 16);
/// How long the upstream works on a request, so that restarts meet some.
const WORK: Duration = Duration::from_millis(2);
/// Bytes of a large response, and of the pieces in which it comes.
const LARGE_BYTES: (usize, usize) = (100_000, 10_000);
/// Bytes of a request's body.
const UPLOAD_BYTES: usize = 1_000;

type Failure = Box<dyn Error + Send + Sync>;

/// What clients send in turn: the method, the path, and how long the response is.
const REQUESTS: [(Method, &str, usize); 3] =
    [(Method::GET, "/small", 5), (Method::GET, "/large", LARGE_BYTES.0), (Method::POST, "/upload", 5)];

/// How the requests of all clients ended.
#[derive(Debug, Default)]
struct RequestEndCounts {
    whole: Cell<u64>,
    /// The proxy's 502 in place of a response, to requests that may not be sent twice.
    bad_gateway: Cell<u64>,
    /// The same to a `GET`: its connection was new.
    bad_gateway_get: Cell<u64>,
    /// A response that was not complete.
    cut: Cell<u64>,
}

impl RequestEndCounts {
    fn add_bad_gateway(&self, method: &Method) {
        add(if *method == Method::GET { &self.bad_gateway_get } else { &self.bad_gateway });
    }
}

fn add(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

fn main() -> Result<(), Failure> {
    let seconds = std::env::args().nth(1).map_or(Ok(600), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("app.sock");
    let restarts = serve_on_a_thread(&socket)?;
    let (proxy, config) = proxy(&socket)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (ends, restarted) = runtime.block_on(LocalSet::new().run_until(load(
        Duration::from_secs(seconds),
        proxy.local_addrs()[0],
        config,
        restarts,
    )))?;
    check(proxy, &ends, restarted)
}

fn proxy(socket: &Path) -> Result<(Proxy, Arc<ClientConfig>), Failure> {
    let certificate = Certificate::generate(&["localhost".to_owned()])?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.leaf_der().to_vec()))?;
    let mut tls = Tls::new(certificate);
    tls.settings.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()];
    let config = ProxyConfig::new(vec!["127.0.0.1:0".parse()?], Upstream::Unix(socket.to_owned()), tls);
    let proxy = proxy_http::bind(config, HttpConfig::default(), proxy_core::ListenerSource::Bind)?.start()?;
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok((proxy, Arc::new(client)))
}

/// Serves until the process ends. Whoever changes the value that it returns restarts it.
fn serve_on_a_thread(socket: &Path) -> Result<watch::Sender<u64>, Failure> {
    let (restart, restarts) = watch::channel(0);
    let listener = std::os::unix::net::UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let listener = UnixListener::from_std(listener)?;
            loop {
                let (stream, _) = listener.accept().await?;
                let mut restarts = restarts.clone();
                restarts.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = serve(stream) => {}
                        _ = restarts.changed() => {}
                    }
                });
            }
            #[expect(unreachable_code, reason = "names the type of its errors")]
            io::Result::Ok(())
        })
    });
    Ok(restart)
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(head) = read_head(&mut stream).await? {
        let mut body = vec![0; content_length(&head)];
        stream.read_exact(&mut body).await?;
        tokio::time::sleep(WORK).await;
        let is_large = head.starts_with("GET /large ");
        let (bytes, piece) = if is_large { LARGE_BYTES } else { (5, 5) };
        stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n").as_bytes()).await?;
        for _ in 0..bytes / piece {
            stream.write_all(&vec![b'x'; piece]).await?;
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}

/// Reads a head; `None` at the end of the stream.
async fn read_head(stream: &mut BufReader<impl AsyncRead + Unpin>) -> io::Result<Option<String>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(head))
}

fn content_length(head: &str) -> usize {
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// Loads the proxy for a time, and restarts the upstream. Returns how the requests ended, and the number of restarts.
async fn load(
    duration: Duration,
    addr: std::net::SocketAddr,
    config: Arc<ClientConfig>,
    restarts: watch::Sender<u64>,
) -> Result<(Rc<RequestEndCounts>, u64), Failure> {
    let ends = Rc::new(RequestEndCounts::default());
    let until = Instant::now() + duration;
    let mut clients = tokio::task::JoinSet::new();
    for n in 0..CLIENTS1 {
        let (config, ends) = (Arc::clone(&config), Rc::clone(&ends));
        clients.spawn_local(async move { client1(addr, config, until, n, &ends).await });
    }
    for _ in 0..CLIENTS2.0 {
        let (config, ends) = (Arc::clone(&config), Rc::clone(&ends));
        clients.spawn_local(client2(addr, config, until, ends));
    }
    let number = restarts.subscribe();
    let timer = tokio::task::spawn_local(async move {
        loop {
            tokio::time::sleep(RESTART_EVERY).await;
            restarts.send_modify(|number| *number += 1);
        }
    });
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    timer.abort();
    let restarted = *number.borrow();
    Ok((ends, restarted))
}

async fn connect(
    addr: std::net::SocketAddr,
    config: &Arc<ClientConfig>,
    alpn: &str,
) -> Result<TlsStream<TcpStream>, Failure> {
    let mut config = ClientConfig::clone(config);
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let socket = TcpStream::connect(addr).await?;
    socket.set_nodelay(true)?;
    Ok(TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost")?, socket).await?)
}

/// A client of HTTP/1.1, on a new connection wherever the proxy has ended the one before.
async fn client1(
    addr: std::net::SocketAddr,
    config: Arc<ClientConfig>,
    until: Instant,
    first: usize,
    ends: &RequestEndCounts,
) -> Result<(), Failure> {
    let mut requests = REQUESTS.iter().cycle().skip(first);
    while Instant::now() < until {
        let mut stream = BufReader::new(connect(addr, &config, "http/1.1").await?);
        while Instant::now() < until {
            let Some((method, path, length)) = requests.next() else { break };
            match exchange1(&mut stream, method, path).await {
                Ok(Some((200, is_last, bytes))) if bytes == *length => {
                    add(&ends.whole);
                    if is_last {
                        break;
                    }
                }
                Ok(Some((502, is_last, _))) => {
                    ends.add_bad_gateway(method);
                    if is_last {
                        break;
                    }
                }
                Ok(Some((status, ..))) => return Err(format!("{method} {path}: status {status}").into()),
                Ok(None) => return Err(format!("{method} {path}: closed without a response").into()),
                Err(_) => {
                    add(&ends.cut);
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Sends a request. Returns the status, whether it is the connection's last response, and the length of the body; an error
/// if the response is cut.
async fn exchange1(
    stream: &mut BufReader<TlsStream<TcpStream>>,
    method: &Method,
    path: &str,
) -> io::Result<Option<(u16, bool, usize)>> {
    let body = if *method == Method::POST { UPLOAD_BYTES } else { 0 };
    let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {body}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(&vec![b'x'; body]).await?;
    stream.flush().await?;
    let Some(head) = read_head(stream).await? else { return Ok(None) };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let mut body = vec![0; content_length(&head)];
    stream.read_exact(&mut body).await?;
    Ok(Some((status, head.to_ascii_lowercase().contains("connection: close"), body.len())))
}

/// A client of HTTP/2 with many streams.
async fn client2(
    addr: std::net::SocketAddr,
    config: Arc<ClientConfig>,
    until: Instant,
    ends: Rc<RequestEndCounts>,
) -> Result<(), Failure> {
    let (client, connection) = h2::client::handshake(connect(addr, &config, "h2").await?).await?;
    let connection = tokio::task::spawn_local(connection);
    let mut streams = tokio::task::JoinSet::new();
    for n in 0..CLIENTS2.1 {
        let (client, ends) = (client.clone(), Rc::clone(&ends));
        streams.spawn_local(async move {
            for (method, path, length) in REQUESTS.iter().cycle().skip(n) {
                if Instant::now() >= until {
                    break;
                }
                match exchange2(&client, method, path).await? {
                    Some((StatusCode::OK, bytes)) if bytes == *length => add(&ends.whole),
                    Some((StatusCode::BAD_GATEWAY, _)) => ends.add_bad_gateway(method),
                    Some((status, bytes)) => {
                        return Err(format!("{method} {path}: status {status} with {bytes} bytes").into());
                    }
                    None => add(&ends.cut),
                }
            }
            Ok::<(), Failure>(())
        });
    }
    while let Some(ended) = streams.join_next().await {
        ended??;
    }
    drop(client);
    Ok(connection.await??)
}

/// Sends a request. Returns the status and the length of the body; `None` if the response is cut.
async fn exchange2(
    client: &SendRequest<Bytes>,
    method: &Method,
    path: &str,
) -> Result<Option<(StatusCode, usize)>, Failure> {
    let mut client = client.clone().ready().await?;
    let is_upload = *method == Method::POST;
    let request = Request::builder().method(method).uri(format!("https://localhost{path}"));
    // The upstream understands no chunks.
    let request = request.header("content-length", if is_upload { UPLOAD_BYTES } else { 0 }).body(())?;
    let (response, mut body) = client.send_request(request, !is_upload)?;
    if is_upload {
        body.send_data(Bytes::from_static(&[b'x'; UPLOAD_BYTES]), true)?;
    }
    let Ok(response) = response.await else { return Ok(None) };
    let (status, mut body) = (response.status(), response.into_body());
    let mut bytes = 0;
    while let Some(data) = body.data().await {
        let Ok(data) = data else { return Ok(None) };
        bytes += data.len();
        body.flow_control().release_capacity(data.len())?;
    }
    Ok(Some((status, bytes)))
}

/// Compares what clients and proxy have counted.
fn check(mut proxy: Proxy, ends: &RequestEndCounts, restarts: u64) -> Result<(), Failure> {
    proxy.drain();
    if !proxy.wait(Duration::from_secs(60)) {
        return Err("the drain does not end".into());
    }
    let mut total = ProxyDelta::default();
    proxy.collect(&mut total, Duration::from_secs(5));
    let counters = total.http.ok_or("the proxy has counted nothing")?.counters;
    let (whole, cut, of_get) = (ends.whole.get(), ends.cut.get(), ends.bad_gateway_get.get());
    let bad_gateway = ends.bad_gateway.get() + of_get;
    println!(
        "{restarts} restarts; clients: {whole} whole, {bad_gateway} answered 502 ({of_get} GET on a new connection), {cut} \
         cut; proxy: {} requests, {} retried",
        counters[HttpCounter::Requests],
        counters[HttpCounter::Retried]
    );
    let mut wrong = Vec::new();
    for (_, counter, cause) in RequestFailure::ALL {
        let expected = match counter {
            HttpCounter::FailedUpstreamClosed => bad_gateway,
            HttpCounter::FailedUpstreamCut => cut,
            _ => 0,
        };
        if counters[counter] > 0 {
            println!("{cause}: {}", counters[counter]);
        }
        if counters[counter] != expected {
            wrong.push(format!("{cause}: clients saw {expected}, the proxy counted {}", counters[counter]));
        }
    }
    if counters[HttpCounter::Requests] != whole + bad_gateway + cut {
        wrong.push("clients and proxy have counted other numbers of requests".to_owned());
    }
    if restarts > 0 && counters[HttpCounter::Retried] == 0 {
        wrong.push("no restart met a request that may be sent twice".to_owned());
    }
    // Connections are kept, so few are new when a restart comes.
    if of_get > restarts {
        wrong.push("requests that may be sent twice were not".to_owned());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}
