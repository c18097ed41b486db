//! An upstream of HTTP/2: the h2 crate, with a script for each request.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request, Response};
use proxy_core::Upstream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::task::LocalSet;

use crate::http2_client::Bytes;

type Script = dyn Fn(ServedRequest) -> Pin<Box<dyn Future<Output = ()>>> + Send + Sync;
trait Stream: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// A request, as the upstream sees it.
pub(crate) struct ServedRequest {
    pub(crate) head: Request<()>,
    pub(crate) body: RecvStream,
    pub(crate) respond: SendResponse<Bytes>,
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
}

/// An upstream that runs its script for each request, until the test process ends.
pub(crate) struct Http2Upstream {
    pub(crate) upstream: Upstream,
    connections: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<Request<()>>>>,
    _dir: tempfile::TempDir,
}

/// How an upstream behaves, besides its script.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Behaviour {
    /// Streams of a connection at once.
    pub(crate) streams_max: Option<u32>,
    /// Connections after which it listens no more.
    pub(crate) connections_max: Option<usize>,
    /// Requests of a connection after which it announces its end.
    pub(crate) requests_max: Option<usize>,
    /// Whether it takes extended CONNECTs.
    pub(crate) takes_connect: bool,
    /// Whether it speaks TLS, and with which protocol of ALPN.
    pub(crate) alpn: Option<&'static str>,
}

impl Http2Upstream {
    pub(crate) fn start<F>(script: impl Fn(ServedRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        Self::start_with(Behaviour::default(), script)
    }

    pub(crate) fn start_with<F>(
        behaviour: Behaviour,
        script: impl Fn(ServedRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("app.sock");
        let (connections, heads) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
        let script: Arc<Script> = Arc::new(move |request| Box::pin(script(request)));
        let served = (Arc::clone(&connections), Arc::clone(&heads));
        let (told, address) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            LocalSet::new().block_on(&runtime, async move {
                let serve = |stream: Box<dyn Stream>| {
                    let number = served.0.fetch_add(1, Ordering::SeqCst);
                    let (script, heads) = (Arc::clone(&script), Arc::clone(&served.1));
                    drop(tokio::task::spawn_local(serve(stream, number, behaviour, script, heads)));
                };
                let Some(alpn) = behaviour.alpn else {
                    let listener = UnixListener::bind(&path).unwrap();
                    told.send(format!("h2c://unix:{}", path.display())).unwrap();
                    for _ in 0..behaviour.connections_max.unwrap_or(usize::MAX) {
                        serve(Box::new(listener.accept().await.unwrap().0));
                    }
                    drop(listener);
                    return std::future::pending().await;
                };
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(format!("h2://{}", listener.local_addr().unwrap())).unwrap();
                let mut config = rustls::ServerConfig::clone(&crate::upstream::server_config());
                config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
                let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
                loop {
                    if let Ok(stream) = acceptor.accept(listener.accept().await.unwrap().0).await {
                        serve(Box::new(stream));
                    }
                }
            });
        });
        let upstream = address.recv().unwrap().parse().unwrap();
        Self { upstream, connections, heads, _dir: dir }
    }

    /// Connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Heads of requests so far.
    pub(crate) fn heads(&self) -> Vec<Request<()>> {
        self.heads.lock().unwrap().clone()
    }
}

async fn serve(
    stream: Box<dyn Stream>,
    number: usize,
    behaviour: Behaviour,
    script: Arc<Script>,
    heads: Arc<Mutex<Vec<Request<()>>>>,
) {
    let mut builder = Builder::new();
    if let Some(max) = behaviour.streams_max {
        builder.max_concurrent_streams(max);
    }
    if behaviour.takes_connect {
        builder.enable_connect_protocol();
    }
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else { return };
    let mut requests = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (parts, body) = request.into_parts();
        let head = Request::from_parts(parts, ());
        heads.lock().unwrap().push(head.clone());
        let request = ServedRequest { head, body, respond, connection: number };
        drop(tokio::task::spawn_local(script(request)));
        requests += 1;
        if behaviour.requests_max == Some(requests) {
            connection.graceful_shutdown();
        }
    }
}

impl ServedRequest {
    pub(crate) fn path(&self) -> String {
        self.head.uri().path().to_owned()
    }

    /// Reads the content to its end.
    pub(crate) async fn content(&mut self) -> (Vec<u8>, Option<HeaderMap>) {
        let mut bytes = Vec::new();
        while let Some(Ok(data)) = self.body.data().await {
            self.body.flow_control().release_capacity(data.len()).unwrap();
            bytes.extend_from_slice(&data);
        }
        (bytes, self.body.trailers().await.ok().flatten())
    }

    /// Responds with status 200, these fields, this content, and these trailers.
    pub(crate) async fn respond(
        mut self,
        fields: &[(&'static str, &'static str)],
        content: impl Into<Bytes>,
        trailers: Option<HeaderMap>,
    ) {
        let response =
            fields.iter().fold(Response::builder(), |response, (name, value)| response.header(*name, *value));
        let response = response.body(()).unwrap();
        let mut content: Bytes = content.into();
        let is_empty = content.is_empty() && trailers.is_none();
        let Ok(mut stream) = self.respond.send_response(response, is_empty) else { return };
        while !content.is_empty() {
            stream.reserve_capacity(content.len());
            let Some(Ok(room)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
            let data = content.split_to(room.min(content.len()));
            let is_last = content.is_empty() && trailers.is_none();
            if stream.send_data(data, is_last).is_err() {
                return;
            }
        }
        if let Some(trailers) = trailers {
            let _ = stream.send_trailers(trailers);
        }
    }

    pub(crate) fn reset(mut self, reason: Reason) {
        self.respond.send_reset(reason);
    }
}
