//! The demo upstream: a small HTTP/1.1 server behind a proxy.

mod answers;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Most connections at a time; the backlog holds the rest.
const CONNECTIONS_MAX: usize = 100_000;
/// Wait after a failed accept, usually for lack of descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamAddr {
    Unix(PathBuf),
    /// A TCP address; port 0 takes a free one.
    Tcp(SocketAddr),
}

impl fmt::Display for UpstreamAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(addr) => addr.fmt(f),
        }
    }
}

/// An error at the start of the demo upstream.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the demo upstream on {addr}: {error}")]
pub struct UpstreamError {
    addr: UpstreamAddr,
    error: io::Error,
}

/// A server on its own threads, named `upstream`, which end when it is dropped.
///
/// `/bytes/N` answers N bytes, up to 1 GiB; `POST /echo` and `PUT /echo` return their body; `GET /` answers a
/// greeting. A prefix `/api` or `/files` of the path changes nothing.
#[derive(Debug)]
pub struct DemoUpstream {
    addr: UpstreamAddr,
    threads: Vec<UpstreamThread>,
}

/// A thread with its own runtime, which accepts from the socket of all.
#[derive(Debug)]
struct UpstreamThread {
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    handle: Option<JoinHandle<()>>,
}

impl DemoUpstream {
    /// Listens and starts one thread. Replaces a stale Unix socket.
    pub fn start(addr: UpstreamAddr) -> Result<Self, UpstreamError> {
        Self::start_threads(addr, NonZeroUsize::MIN)
    }

    /// Binds the address and starts `threads` threads. Replaces a stale Unix socket.
    pub fn start_threads(addr: UpstreamAddr, threads: NonZeroUsize) -> Result<Self, UpstreamError> {
        Self::try_start(&addr, threads).map_err(|error| UpstreamError { addr, error })
    }

    fn try_start(addr: &UpstreamAddr, threads: NonZeroUsize) -> io::Result<Self> {
        let (listener, addr) = BoundListener::bind(addr)?;
        // If a thread cannot be started, the others end with it.
        let mut upstream = Self { addr, threads: Vec::new() };
        for _ in 0..threads.get() {
            upstream.threads.push(UpstreamThread::start(listener.try_clone()?)?);
        }
        Ok(upstream)
    }

    /// Its address, with the port that the kernel chose.
    pub fn address(&self) -> &UpstreamAddr {
        &self.addr
    }
}

impl UpstreamThread {
    fn start(listener: BoundListener) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listener = listener.register(&runtime)?;
        let (stop, stopped) = oneshot::channel();
        let handle = std::thread::Builder::new().name("upstream".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serve(listener) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { stop: Some(stop), handle: Some(handle) })
    }
}

impl Drop for UpstreamThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(handle) = self.handle.take() {
            // A thread that panicked has already reported it.
            let _ = handle.join();
        }
    }
}

impl Drop for DemoUpstream {
    fn drop(&mut self) {
        self.threads.clear();
        if let UpstreamAddr::Unix(path) = &self.addr {
            // The socket may be gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}

enum BoundListener {
    Unix(UnixListener),
    Tcp(std::net::TcpListener),
}

impl BoundListener {
    fn bind(addr: &UpstreamAddr) -> io::Result<(Self, UpstreamAddr)> {
        match addr {
            UpstreamAddr::Unix(path) => {
                remove_stale_socket(path)?;
                let listener = UnixListener::bind(path)?;
                listener.set_nonblocking(true)?;
                Ok((Self::Unix(listener), addr.clone()))
            }
            UpstreamAddr::Tcp(tcp) => {
                let listener = std::net::TcpListener::bind(tcp)?;
                listener.set_nonblocking(true)?;
                let bound = UpstreamAddr::Tcp(listener.local_addr()?);
                Ok((Self::Tcp(listener), bound))
            }
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Unix(listener) => Self::Unix(listener.try_clone()?),
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
        })
    }

    fn register(self, runtime: &tokio::runtime::Runtime) -> io::Result<TokioListener> {
        // Registering with the runtime needs to happen inside of it.
        let _inside = runtime.enter();
        Ok(match self {
            Self::Unix(listener) => TokioListener::Unix(tokio::net::UnixListener::from_std(listener)?),
            Self::Tcp(listener) => TokioListener::Tcp(tokio::net::TcpListener::from_std(listener)?),
        })
    }
}

/// The listener as registered with a thread's tokio runtime.
enum TokioListener {
    Unix(tokio::net::UnixListener),
    Tcp(tokio::net::TcpListener),
}

impl TokioListener {
    /// Accepts one connection and answers it in a separate task.
    async fn accept(&self, permit: OwnedSemaphorePermit) -> io::Result<()> {
        match self {
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(answer(stream, permit));
            }
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                tokio::spawn(answer(stream, permit));
            }
        }
        Ok(())
    }
}

/// Removes a socket left by an earlier run, and nothing else.
fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    match UnixStream::connect(path) {
        Err(error) if is_socket && error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Ok(()),
    }
}

async fn serve(listener: TokioListener) {
    let permits = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(permit) = Arc::clone(&permits).acquire_owned().await {
        if listener.accept(permit).await.is_err() {
            tokio::time::sleep(ACCEPT_BACKOFF).await;
        }
    }
}

async fn answer(stream: impl AsyncRead + AsyncWrite + Unpin, permit: OwnedSemaphorePermit) {
    // A client that goes away or sends nonsense ends its own connection, which needs no report.
    let _ = http1::Builder::new()
        // A half-closed client still gets its answer.
        .half_close(true)
        .serve_connection(TokioIo::new(stream), service_fn(answers::answer))
        .await;
    drop(permit);
}
