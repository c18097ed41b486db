//! The endpoint of `--metrics`: figures for Prometheus, health and readiness.
//!
//! The figures come from the model, on the thread that owns it, without involving a worker. Requests of a connection
//! are answered in succession, on a few threads, each for a bounded time. So a slow scraper does not affect others.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use report::MetricsFormat;
use telemetry::{Model, RunId, Timestamps};
use tui::DashboardSender;

use crate::service::accepting::AcceptStop;
use crate::service::clients::{ClientSemaphore, read_model};
use crate::session::spawn;

/// Connections that are served at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 8;
/// The time for a request to arrive, and for the model to be read.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time for a client to take the answer.
const SEND_PATIENCE: Duration = Duration::from_secs(10);
/// The size of a request's head.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// The header fields of a request.
const FIELDS_MAX: usize = 64;
/// A record is late after this many intervals and a second.
const LATE_INTERVALS: u32 = 3;

/// A listening socket for scrapes.
#[derive(Debug)]
pub(crate) struct MetricsListener(TcpListener);

/// The served endpoints.
#[derive(Clone, Debug)]
pub(crate) struct MetricsSource {
    /// The run whose figures are served.
    pub(crate) run: RunId,
    /// The number of clients with separate figures.
    pub(crate) clients_max: usize,
    /// The queue to the owner of the model.
    pub(crate) events: DashboardSender,
    /// The time between two records of the counters.
    pub(crate) interval: Duration,
    /// True once the run ends: connections may finish, and no new ones are served.
    pub(crate) is_ending: Arc<AtomicBool>,
}

impl MetricsListener {
    /// Listens on `addr`.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub(crate) fn bind(addr: SocketAddr) -> anyhow::Result<Self> {
        let listener =
            TcpListener::bind(addr).with_context(|| format!("cannot listen on --metrics {addr}"))?;
        Ok(Self(listener))
    }

    /// Listens on a socket that another process had.
    pub(crate) fn take_over(listener: TcpListener) -> Self {
        Self(listener)
    }

    /// The socket, for the process that replaces this one.
    ///
    /// # Errors
    /// If there is no descriptor for it.
    pub(crate) fn share(&self) -> io::Result<OwnedFd> {
        self.0.as_fd().try_clone_to_owned()
    }

    /// The address that it listens on.
    pub(crate) fn addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves `source` until the process ends, or `stop` ends it.
    ///
    /// # Errors
    /// If there can be no thread for it.
    pub(crate) fn serve(self, source: MetricsSource, stop: AcceptStop) -> anyhow::Result<()> {
        let places = ClientSemaphore::new(CONNECTIONS_MAX);
        self.0.set_nonblocking(true).context("cannot serve --metrics")?;
        // CPU time is accounted by the beginning of the name.
        spawn("dashboard-scrape", move || {
            let accept = |listener: &TcpListener| listener.accept().map(|(stream, _)| stream);
            stop.accept_until(&self.0, accept, |stream| {
                let source = source.clone();
                if let Some(place) = places.take() {
                    // Without a thread the connection is closed.
                    let _ = spawn("dashboard-scrape", move || {
                        // The client may leave at any time.
                        let _ = answer(stream, &source);
                        drop(place);
                    });
                }
            });
        })?;
        Ok(())
    }
}

/// The answer to a request.
struct ScrapeResponse {
    status: &'static str,
    content_type: &'static str,
    body: String,
}

impl ScrapeResponse {
    fn text(status: &'static str, body: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{body}\n") }
    }
}

fn answer(mut stream: TcpStream, source: &MetricsSource) -> io::Result<()> {
    let (answer, has_body) = match read_request(&mut stream)? {
        Some(ScrapeRequest { path, has_body, format }) => (source.answer(&path, format), has_body),
        None => (ScrapeResponse::text("400 Bad Request", "expected GET or HEAD over HTTP/1.1"), true),
    };
    let ScrapeResponse { status, content_type, body } = answer;
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    if has_body {
        bytes.push_str(&body);
    }
    write_within(&mut stream, bytes.as_bytes(), SEND_PATIENCE)
}

/// A request of a scraper.
struct ScrapeRequest {
    path: String,
    /// Whether the answer has a body: not to HEAD.
    has_body: bool,
    format: MetricsFormat,
}

/// Reads the head of a request; `None` if it is not a valid one.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<ScrapeRequest>> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut request = httparse::Request::new(&mut fields);
        match request.parse(&head) {
            Ok(httparse::Status::Complete(_)) => {
                let path = request.path.and_then(|path| path.split('?').next()).map(str::to_owned);
                let has_body = match request.method {
                    Some("GET") => true,
                    Some("HEAD") => false,
                    _ => return Ok(None),
                };
                let format = accepted_format(request.headers);
                return Ok(path.map(|path| ScrapeRequest { path, has_body, format }));
            }
            Ok(httparse::Status::Partial) if head.len() < HEAD_BYTES_MAX => {}
            Ok(httparse::Status::Partial) | Err(_) => return Ok(None),
        }
        stream.set_read_timeout(Some(until(deadline)?))?;
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend_from_slice(&buffer[..n]),
        }
    }
}

/// The format that a client accepts, as Prometheus asks for it.
fn accepted_format(fields: &[httparse::Header<'_>]) -> MetricsFormat {
    let is_accept = |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case("accept");
    let accepts = |field: &httparse::Header<'_>| {
        String::from_utf8_lossy(field.value).contains("application/openmetrics-text")
    };
    if fields.iter().filter(is_accept).any(accepts) {
        MetricsFormat::OpenMetrics
    } else {
        MetricsFormat::Prometheus
    }
}

fn write_within(stream: &mut TcpStream, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    while !bytes.is_empty() {
        stream.set_write_timeout(Some(until(deadline)?))?;
        match stream.write(bytes)? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            n => bytes = &bytes[n..],
        }
    }
    Ok(())
}

/// The time until a moment; an error after it.
fn until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

impl MetricsSource {
    fn answer(&self, path: &str, format: MetricsFormat) -> ScrapeResponse {
        match path {
            "/metrics" => self.metrics(format),
            "/healthz" => match self.read(|_| ()) {
                Some(()) => ScrapeResponse::text("200 OK", "alive"),
                None => ScrapeResponse::text(
                    "503 Service Unavailable",
                    "the thread that reads the records does not answer",
                ),
            },
            "/readyz" => match self.readiness() {
                Ok(()) => ScrapeResponse::text("200 OK", "ready"),
                Err(reason) => ScrapeResponse::text("503 Service Unavailable", reason),
            },
            _ => ScrapeResponse::text("404 Not Found", "there are /metrics, /healthz and /readyz"),
        }
    }

    fn metrics(&self, format: MetricsFormat) -> ScrapeResponse {
        let (run, clients_max) = (self.run, self.clients_max);
        let text = self.read(move |model| {
            let version = env!("CARGO_PKG_VERSION");
            model.run(run).map(|run| report::open_metrics(run, version, clients_max, format))
        });
        match text.flatten() {
            Some(body) => ScrapeResponse { status: "200 OK", content_type: format.content_type(), body },
            None => ScrapeResponse::text("503 Service Unavailable", "no record of the run was read yet"),
        }
    }

    /// Ready while new connections are served and their figures arrive.
    fn readiness(&self) -> Result<(), &'static str> {
        if self.is_ending.load(Ordering::Relaxed) {
            return Err("ending: no new connections");
        }
        let run = self.run;
        let last_us = self.read(move |model| model.run(run).map(telemetry::model::Run::last_us));
        let last_us = last_us.flatten().ok_or("no record of the run was read yet")?;
        let age_us = Timestamps::now().monotonic_us.saturating_sub(last_us);
        let late = self.interval * LATE_INTERVALS + Duration::from_secs(1);
        if u128::from(age_us) > late.as_micros() { Err("records are late") } else { Ok(()) }
    }

    /// Reads the model; `None` if its owner does not answer.
    fn read<T: Send + 'static>(&self, read: impl FnOnce(&Model) -> T + Send + 'static) -> Option<T> {
        read_model(&self.events, PATIENCE, read)
    }
}
