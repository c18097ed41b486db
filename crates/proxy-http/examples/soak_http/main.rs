//! Mixed load of HTTP/1.1 and HTTP/2 before an upstream that restarts again and again: `just soak-http`, or
//! `just soak-http 120` for so many seconds.
//!
//! A restart closes every connection of the upstream at once, with requests in flight; its socket keeps listening, as one
//! of a service manager does. Nothing may fail but requests in flight that may not be sent twice. Clients and proxy must
//! count the same.
//!
//! Beside them, before an upstream that goes on, honest clients read and write slowly or use a WebSocket, and none may be
//! cut. Others ask for more than there is memory for, and read nothing: all of them are cut, and the process stays small.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

mod clients;
mod slow;
mod upstream;

use std::cell::Cell;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Method;
use proxy_core::{Certificate, HostPattern, Proxy, ProxyConfig, Tls, Upstream};
use proxy_http::{HttpConfig, Route, RouteTimeouts};
use records::delta::ProxyDelta;
use records::metrics::{HttpCounter, RequestFailure};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::clients::{client1, client2};
use crate::slow::{SlowClient, read_nothing};
use crate::upstream::serve_on_a_thread;

/// Time between two restarts of the upstream.
const RESTART_EVERY: Duration = Duration::from_secs(20);
/// Connections that speak HTTP/1.1, one request at a time.
const CLIENTS1: usize = 32;
/// Connections that speak HTTP/2.
const CLIENTS2: usize = 8;
/// Connections of each kind of slow client.
const SLOW_CLIENTS: usize = 2;
/// Connections that read nothing. They want more memory than they get.
const UNREAD_CLIENTS: usize = 16;
const PENDING_BYTES_MAX: usize = 16 << 20;
/// What such a connection may take (docs/limits.md), and all else, clients and upstreams too.
const CONNECTION_BYTES_MAX: usize = 6 << 20;
const OTHER_BYTES_MAX: usize = 72 << 20;
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

type Failure = Box<dyn Error + Send + Sync>;

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
    /// Whole exchanges of slow clients.
    slow: Cell<u64>,
    /// Requests of clients that read nothing.
    unread: Cell<u64>,
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
    let steady = folder.path().join("steady.sock");
    let _goes_on = serve_on_a_thread(&steady)?;
    let (mut proxy, config) = proxy(&socket, &steady)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let began_at = Instant::now();
    let loaded = runtime.block_on(LocalSet::new().run_until(load(
        Duration::from_secs(seconds),
        proxy.local_addrs()[0],
        config,
        restarts,
    )));
    let (ends, restarted) = loaded.inspect_err(|_| {
        let mut total = ProxyDelta::default();
        proxy.collect(&mut total, Duration::from_secs(5));
        let causes = RequestFailure::ALL.map(|(cause, counter)| {
            (cause.to_string(), total.http.as_ref().map_or(0, |http| http.counters[counter]))
        });
        println!("after {:?}: {causes:?} {:?}", began_at.elapsed(), total.counters);
    })?;
    check(proxy, &ends, restarted)
}

fn proxy(socket: &Path, steady: &Path) -> Result<(Proxy, Arc<ClientConfig>), Failure> {
    let certificate = Certificate::generate(&["localhost".to_owned()])?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.leaf_der().to_vec()))?;
    let mut tls = Tls::new(certificate);
    tls.settings.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()];
    let mut config = ProxyConfig::new(vec!["127.0.0.1:0".parse()?], Upstream::unix(socket.to_owned()), tls);
    config.limits.pending_bytes_max = PENDING_BYTES_MAX;
    config.limits.send_timeout = SEND_TIMEOUT;
    let steady = Route {
        host: HostPattern::Any,
        prefix: "/steady".to_owned(),
        upstreams: vec![Upstream::unix(steady.to_owned())],
        timeouts: RouteTimeouts::default(),
    };
    let http = HttpConfig { routes: vec![steady], ..HttpConfig::default() };
    let proxy = proxy_http::bind(config, http, proxy_core::ListenerSource::Bind)?.start()?;
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok((proxy, Arc::new(client)))
}

/// Loads the proxy for a time, and restarts the upstream. Returns how the requests ended, and the number of restarts.
async fn load(
    duration: Duration,
    addr: SocketAddr,
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
    for _ in 0..CLIENTS2 {
        clients.spawn_local(client2(addr, Arc::clone(&config), until, Rc::clone(&ends)));
    }
    for client in SlowClient::ALL.into_iter().cycle().take(SLOW_CLIENTS * SlowClient::ALL.len()) {
        clients.spawn_local(client.run(addr, Arc::clone(&config), until, Rc::clone(&ends)));
    }
    for _ in 0..UNREAD_CLIENTS {
        clients.spawn_local(read_nothing(addr, Arc::clone(&config), until, Rc::clone(&ends)));
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
    addr: SocketAddr,
    config: &Arc<ClientConfig>,
    alpn: &str,
) -> Result<TlsStream<TcpStream>, Failure> {
    let mut config = ClientConfig::clone(config);
    config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
    let socket = TcpStream::connect(addr).await?;
    socket.set_nodelay(true)?;
    Ok(TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost")?, socket).await?)
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
    let (slow, unread) = (ends.slow.get(), ends.unread.get());
    let bad_gateway = ends.bad_gateway.get() + of_get;
    let memory = peak_memory()?;
    println!(
        "{restarts} restarts; clients: {whole} whole, {slow} slow, {bad_gateway} answered 502 ({of_get} GET on a new \
         connection), {cut} cut, {unread} not read; proxy: {} requests, {} retried; at most {} MiB",
        counters[HttpCounter::Requests],
        counters[HttpCounter::Retried],
        memory >> 20
    );
    let mut wrong = Vec::new();
    let mut cut_unread = 0;
    for (cause, counter) in RequestFailure::ALL {
        let counted = counters[counter];
        if counted > 0 {
            println!("{cause}: {counted}");
        }
        let expected = match counter {
            HttpCounter::FailedUpstreamClosed => bad_gateway,
            HttpCounter::FailedUpstreamCut => cut,
            HttpCounter::FailedPendingBound
            | HttpCounter::FailedSendTimeout
            | HttpCounter::FailedClientGone => {
                cut_unread += counted;
                continue;
            }
            _ => 0,
        };
        if counted != expected {
            wrong.push(format!("{cause}: clients saw {expected}, the proxy counted {counted}"));
        }
    }
    if cut_unread != unread {
        wrong.push(format!("{unread} requests of clients that read nothing, {cut_unread} cut"));
    }
    if unread > 0 && counters[HttpCounter::FailedPendingBound] == 0 {
        wrong.push("clients that read nothing never reached the bound".to_owned());
    }
    if memory > UNREAD_CLIENTS * CONNECTION_BYTES_MAX + OTHER_BYTES_MAX {
        wrong.push("the process took more memory than it may".to_owned());
    }
    if counters[HttpCounter::Requests] != whole + slow + bad_gateway + cut + unread {
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

/// The most memory that the process has had resident, in bytes.
fn peak_memory() -> Result<usize, Failure> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB"));
    Ok(kilobytes.ok_or("no VmHWM")?.trim().parse::<usize>()? << 10)
}
