//! Mixed load before upstreams that restart and names that move: `just soak-http`, or `just soak-http 120` for so many
//! seconds.
//!
//! - Requests of HTTP/1.1 and HTTP/2 go to an upstream of HTTP/1.1, and calls of gRPC to one of HTTP/2, unary and streamed.
//!   A restart closes every connection at once, with requests in flight; its socket keeps listening, as one of a service
//!   manager does. Every other restart of HTTP/2 announces the end with GOAWAY instead, and no call may fail. Nothing else
//!   may fail but requests in flight that may not be sent twice.
//! - Requests and calls go to names whose only address is replaced again and again. None of them may fail.
//! - Before upstreams that go on, honest clients read and write slowly or use a WebSocket, and none may be cut. Others ask
//!   for more than there is memory for, and read nothing: all of them are cut, and the process stays small.
//!
//! Clients and proxy must count the same, and memory must stay flat.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

mod calls;
mod clients;
mod ends;
mod memory;
mod slow;
mod upstream;
mod upstream2;
#[path = "../../tests/common/websocket_accept.rs"]
mod websocket_accept;

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use proxy_core::{Certificate, HostPattern, Proxy, ProxyConfig, Resolver, Tls, Upstream};
use proxy_http::{HttpConfig, Route, RouteTimeouts};
use records::delta::ProxyDelta;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::calls::call_client;
use crate::clients::{client1, client2};
use crate::ends::RequestEnds;
use crate::slow::{SlowClient, read_nothing};
use crate::upstream::{Listener, serve_on_a_thread, serve1};
use crate::upstream2::serve2;

/// Time between two restarts of the upstreams.
const RESTART_EVERY: Duration = Duration::from_secs(10);
/// Time between two moves of the names. The former address is served as long: until the proxy has followed, which it does
/// within a second, and what is in flight has ended.
const MOVE_EVERY: Duration = Duration::from_secs(5);
/// Connections that speak HTTP/1.1, one request at a time.
const CLIENTS1: usize = 32;
/// Connections that speak HTTP/2.
const CLIENTS2: usize = 8;
/// Connections with calls of gRPC, of each kind.
const CALL_CLIENTS: usize = 2;
/// Connections of each kind of slow client.
const SLOW_CLIENTS: usize = 2;
/// Connections that read nothing. They want more memory than they get.
const UNREAD_CLIENTS: usize = 16;
const PENDING_BYTES_MAX: usize = 16 << 20;
/// What such a connection may take (docs/limits.md), and all else: the process, and 100 connections of other clients with
/// these clients and their upstreams.
const CONNECTION_BYTES_MAX: usize = 6 << 20;
const OTHER_BYTES_MAX: usize = 72 << 20;
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
const SAMPLE_EVERY: Duration = Duration::from_millis(200);

type Failure = Box<dyn Error + Send + Sync>;

/// The only address of each name.
type Names = Arc<Mutex<HashMap<&'static str, SocketAddr>>>;

fn main() -> Result<(), Failure> {
    let seconds = std::env::args().nth(1).map_or(Ok(600), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let listen = |name| {
        let path = folder.path().join(name);
        || UnixListener::bind(path).map(Listener::Unix)
    };
    let restarts = [serve_on_a_thread(listen("app"), serve1)?, serve_on_a_thread(listen("calls"), serve2)?];
    let _go_on =
        [serve_on_a_thread(listen("steady"), serve1)?, serve_on_a_thread(listen("steady2"), serve2)?];
    let names = Names::default();
    let served = serve_names(&names, 0)?;
    let (mut proxy, config) = proxy(folder.path(), &names)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let began_at = Instant::now();
    let (ends, samples) = (Rc::new(RequestEnds::new()), RefCell::default());
    let loaded = runtime.block_on(LocalSet::new().run_until(async {
        tokio::select! {
            ended = load(Duration::from_secs(seconds), proxy.local_addrs()[0], config, &ends) => ended,
            failed = restart(restarts, &ends) => failed,
            failed = move_names(&names, served, &proxy, &ends) => failed,
            failed = sample(&samples) => failed,
        }
    }));
    if loaded.is_ok() {
        proxy.drain();
        if !proxy.wait(Duration::from_secs(60)) {
            return Err("the drain does not end".into());
        }
    }
    let mut total = ProxyDelta::default();
    proxy.collect(&mut total, Duration::from_secs(5));
    let mut wrong = ends.check(&total.http.unwrap_or_default());
    let bytes_max = UNREAD_CLIENTS * CONNECTION_BYTES_MAX + OTHER_BYTES_MAX;
    wrong.extend(memory::check(&samples.borrow(), began_at.elapsed(), bytes_max)?);
    loaded.map_err(|error| format!("after {:?}: {error}", began_at.elapsed()))?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ").into()) }
}

/// Serves the names at a new address, until what it returns is dropped.
fn serve_names(names: &Names, nth: u64) -> Result<[watch::Sender<u64>; 2], Failure> {
    let listen = |name| {
        move || {
            let listener =
                std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, 2 + (nth % 2) as u8], 0)))?;
            listener.set_nonblocking(true)?;
            names.lock().unwrap_or_else(PoisonError::into_inner).insert(name, listener.local_addr()?);
            TcpListener::from_std(listener).map(Listener::Tcp)
        }
    };
    Ok([serve_on_a_thread(listen("app"), serve1)?, serve_on_a_thread(listen("calls"), serve2)?])
}

fn proxy(folder: &Path, names: &Names) -> Result<(Proxy, Arc<ClientConfig>), Failure> {
    let certificate = Certificate::generate(&["localhost".to_owned()])?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.leaf_der().to_vec()))?;
    let mut tls = Tls::new(certificate);
    tls.settings.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()];
    let app = Upstream::unix(folder.join("app"));
    let mut config = ProxyConfig::new(vec!["127.0.0.1:0".parse()?], app, tls);
    config.limits.pending_bytes_max = PENDING_BYTES_MAX;
    config.limits.send_timeout = SEND_TIMEOUT;
    let names = Arc::clone(names);
    config.resolver = Resolver::new(move |name, _| {
        let names = names.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(names.get(name).copied().into_iter().collect())
    });
    let folder = folder.display();
    let route = |(prefix, upstream): (&str, String)| {
        Ok(Route {
            host: HostPattern::Any,
            prefix: prefix.to_owned(),
            upstreams: vec![upstream.parse()?],
            timeouts: RouteTimeouts::default(),
        })
    };
    let routes = [
        ("/calls", format!("h2c://unix:{folder}/calls")),
        ("/steady", format!("unix:{folder}/steady")),
        ("/steady2", format!("h2c://unix:{folder}/steady2")),
        ("/moving", "app:80".to_owned()),
        ("/moving-calls", "h2c://calls:80".to_owned()),
    ];
    let routes = routes.into_iter().map(route).collect::<Result<_, Failure>>()?;
    let http = HttpConfig { routes, ..HttpConfig::default() };
    let proxy = proxy_http::bind(config, http, proxy_core::ListenerSource::Bind)?.start()?;
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok((proxy, Arc::new(client)))
}

/// Loads the proxy for a time.
async fn load(
    duration: Duration,
    addr: SocketAddr,
    config: Arc<ClientConfig>,
    ends: &Rc<RequestEnds>,
) -> Result<(), Failure> {
    let until = Instant::now() + duration;
    let config = || Arc::clone(&config);
    let mut clients = JoinSet::new();
    for (route, ends) in [("", &ends.restarting), ("/moving", &ends.moving)] {
        for n in 0..CLIENTS1 {
            clients.spawn_local(client1(addr, config(), until, (route, n), Rc::clone(ends)));
        }
        for _ in 0..CLIENTS2 {
            clients.spawn_local(client2(addr, config(), until, route, Rc::clone(ends)));
        }
    }
    for (paths, ends) in [
        (["/calls/hello", "/calls/missing"], &ends.calls),
        (["/calls/numbers", "/calls/chat"], &ends.long_calls),
        (["/moving-calls/hello", "/moving-calls/missing"], &ends.moving_calls),
    ] {
        for _ in 0..CALL_CLIENTS {
            clients.spawn_local(call_client(addr, config(), until, paths, Rc::clone(ends)));
        }
    }
    for client in SlowClient::ALL.into_iter().cycle().take(SLOW_CLIENTS * SlowClient::ALL.len()) {
        clients.spawn_local(client.run(addr, config(), until, Rc::clone(ends)));
    }
    for _ in 0..UNREAD_CLIENTS {
        clients.spawn_local(read_nothing(addr, config(), until, Rc::clone(ends)));
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    Ok(())
}

/// Restarts the upstreams again and again. That of HTTP/2 announces its end first, every other time.
async fn restart(upstreams: [watch::Sender<u64>; 2], ends: &RequestEnds) -> Result<(), Failure> {
    loop {
        sleep(RESTART_EVERY).await;
        ends.restarting.set_closed();
        if !upstreams[1].borrow().is_multiple_of(2) {
            ends.calls.set_closed();
            ends.long_calls.set_closed();
        }
        for upstream in &upstreams {
            upstream.send_modify(|number| *number += 1);
        }
    }
}

/// Moves the names again and again.
async fn move_names(
    names: &Names,
    served: [watch::Sender<u64>; 2],
    proxy: &Proxy,
    ends: &RequestEnds,
) -> Result<(), Failure> {
    let mut served = vec![served];
    loop {
        sleep(MOVE_EVERY).await;
        ends.moves.set(ends.moves.get() + 1);
        served.insert(0, serve_names(names, ends.moves.get())?);
        served.truncate(2);
        proxy.resolve_upstreams();
    }
}

async fn sample(samples: &RefCell<Vec<usize>>) -> Result<(), Failure> {
    loop {
        samples.borrow_mut().push(memory::resident_bytes("VmRSS")?);
        sleep(SAMPLE_EVERY).await;
    }
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
