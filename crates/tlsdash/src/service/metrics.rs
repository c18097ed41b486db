//! The endpoint of `--metrics`: figures for Prometheus, health and readiness.
//!
//! The figures come from the model, on the thread that owns it, without involving a worker. Each connection has one of a few
//! threads for a bounded time. Neither silent clients nor slow scrapers keep a health check out: silent ones make room, and
//! figures are served to fewer clients than there are threads.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use model::runs::Model;
use records::ids::RunId;
use records::kinds::{Level, NoticeRecord, Timestamps};
use report::MetricsFormat;
use tui::DashboardSender;

use crate::service::accepting::AcceptStop;
use crate::service::clients::{ClientSemaphore, read_model};
use crate::service::thread::spawn;

/// Connections that are served at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 24;
/// Connections that have not sent a request; one more closes the oldest of them.
const SILENT_MAX: usize = 8;
/// Connections that are being sent figures; others get a response to retry later.
const SCRAPES_MAX: usize = 8;
/// The time for a request to arrive, and for the model to be read.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time for a client to take the answer.
const SEND_PATIENCE: Duration = Duration::from_secs(10);
/// The path of the figures.
const METRICS: &str = "/metrics";
/// The size of a request's head.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// The header fields of a request.
const FIELDS_MAX: usize = 64;
/// A record is late after this many intervals and a second.
const LATE_INTERVALS: u32 = 3;

/// A listening socket for scrapes.
#[derive(Debug)]
pub(crate) struct MetricsListener(TcpListener);

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

/// A warning if others than this host and its private networks may reach the address.
pub(crate) fn warning_of_exposure(addr: SocketAddr) -> Option<NoticeRecord> {
    let is_private = match addr.ip().to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local(),
    };
    let text = format!(
        "--metrics {addr} serves figures and names to everybody who reaches this address, without TLS or password: \
         listen on 127.0.0.1 or a private address, or let a firewall guard it"
    );
    (!is_private).then(|| NoticeRecord::new(Level::Warning, "metrics", &text))
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

    pub(crate) fn addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Serves `source` until the process ends, or `stop` ends it.
    ///
    /// # Errors
    /// If there can be no thread for it.
    pub(crate) fn serve(self, source: MetricsSource, stop: AcceptStop) -> anyhow::Result<()> {
        let [places, scrapes] = [CONNECTIONS_MAX, SCRAPES_MAX].map(ClientSemaphore::new);
        let silent = SilentClients::default();
        self.0.set_nonblocking(true).context("cannot serve --metrics")?;
        // CPU time is accounted by the beginning of the name.
        spawn("dashboard-scrape", move || {
            let accept = |listener: &TcpListener| listener.accept().map(|(stream, _)| stream);
            stop.accept_until(&self.0, accept, |stream| {
                let Some(place) = places.take() else { return };
                let (source, scrapes, silent) = (source.clone(), scrapes.clone(), silent.clone());
                let stream = silent.add(stream);
                // Without a thread the connection is closed.
                let _ = spawn("dashboard-scrape", move || {
                    let request = read_request(&stream);
                    silent.remove(&stream);
                    // The client may leave at any time.
                    let _ = request.and_then(|request| answer(&stream, request, &source, &scrapes));
                    drop(place);
                });
            });
        })?;
        Ok(())
    }
}

/// Clients that have not sent a request, the oldest first. Clones share them.
#[derive(Clone, Debug, Default)]
struct SilentClients(Arc<Mutex<VecDeque<Arc<TcpStream>>>>);

impl SilentClients {
    /// Adds a client, and disconnects the oldest of too many.
    fn add(&self, stream: TcpStream) -> Arc<TcpStream> {
        let stream = Arc::new(stream);
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() == SILENT_MAX
            && let Some(oldest) = clients.pop_front()
        {
            // It may have gone. Its thread finds the end of the stream.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        clients.push_back(Arc::clone(&stream));
        stream
    }

    fn remove(&self, stream: &Arc<TcpStream>) {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|client| !Arc::ptr_eq(client, stream));
    }
}

struct ScrapeResponse {
    status: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
}

impl ScrapeResponse {
    fn text(status: &'static str, body: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{body}\n").into_bytes() }
    }
}

fn answer(
    stream: &TcpStream,
    request: Result<ScrapeRequest, &'static str>,
    source: &MetricsSource,
    scrapes: &ClientSemaphore,
) -> io::Result<()> {
    let place = request.as_ref().is_ok_and(|request| request.path == METRICS).then(|| scrapes.take());
    let (answer, has_body) = match request {
        Ok(ScrapeRequest { has_body, .. }) if matches!(place, Some(None)) => {
            (ScrapeResponse::text("503 Service Unavailable", "too many scrapes at a time"), has_body)
        }
        Ok(ScrapeRequest { path, has_body, format }) => (source.answer(&path, format), has_body),
        Err(reason) => (ScrapeResponse::text("400 Bad Request", reason), true),
    };
    let ScrapeResponse { status, content_type, body } = answer;
    let length = body.len();
    let mut bytes = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )
    .into_bytes();
    if has_body {
        bytes.extend(body);
    }
    write_within(stream, &bytes, SEND_PATIENCE)
}

struct ScrapeRequest {
    path: String,
    /// Whether the answer has a body: not to HEAD.
    has_body: bool,
    format: MetricsFormat,
}

/// Reads the head of a request, or says why it is none.
fn read_request(mut stream: &TcpStream) -> io::Result<Result<ScrapeRequest, &'static str>> {
    const EXPECTED: &str = "expected GET or HEAD over HTTP/1.1";
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
                    _ => return Ok(Err(EXPECTED)),
                };
                let format = accepted_format(request.headers);
                return Ok(path.map(|path| ScrapeRequest { path, has_body, format }).ok_or(EXPECTED));
            }
            Ok(httparse::Status::Partial) if head.len() < HEAD_BYTES_MAX => {}
            // The first byte of a TLS record with a ClientHello.
            Err(_) if head[0] == 0x16 => return Ok(Err("this address serves HTTP without TLS: use http://")),
            Ok(httparse::Status::Partial) | Err(_) => return Ok(Err(EXPECTED)),
        }
        stream.set_read_timeout(Some(until(deadline)?))?;
        match stream.read(&mut buffer)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend_from_slice(&buffer[..n]),
        }
    }
}

/// The format that a client prefers by its Accept fields (RFC 9110, section 12.5.1); Prometheus' text if it names none.
fn accepted_format(fields: &[httparse::Header<'_>]) -> MetricsFormat {
    let accept = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("accept"));
    let accept = accept.map(|field| String::from_utf8_lossy(field.value).to_ascii_lowercase());
    let preferred = accept.filter_map(|value| value.split(',').filter_map(accepted_range).max()).max();
    preferred.map_or(MetricsFormat::Prometheus, |(_, format)| format)
}

/// The format that a media range in lower case names, behind its weight in thousandths.
fn accepted_range(range: &str) -> Option<(u16, MetricsFormat)> {
    let (media_type, parameters) = range.split_once(';').unwrap_or((range, ""));
    let parameters: Vec<&str> = parameters.split(';').map(str::trim).collect();
    // Protobuf has other messages and encodings too, which are not served.
    let is_served = ["proto=io.prometheus.client.metricfamily", "encoding=delimited"]
        .iter()
        .all(|parameter| parameters.contains(parameter));
    let format = match media_type.trim() {
        "application/vnd.google.protobuf" if is_served => MetricsFormat::Protobuf,
        "application/openmetrics-text" => MetricsFormat::OpenMetrics,
        "text/plain" => MetricsFormat::Prometheus,
        _ => return None,
    };
    let weight = parameters.iter().find_map(|parameter| parameter.strip_prefix("q="));
    let weight: f64 = weight.map_or(Some(1.0), |weight| weight.parse().ok())?;
    (weight > 0.0).then_some(((weight * 1e3).round() as u16, format))
}

fn write_within(mut stream: &TcpStream, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
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
            METRICS => self.metrics(format),
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
        let body = self.read(move |model| {
            let version = env!("CARGO_PKG_VERSION");
            model.run(run).map(|run| report::open_metrics(run, version, clients_max, format))
        });
        match body.flatten() {
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
        let last_us = self.read(move |model| model.run(run).map(model::runs::Run::last_us));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_others_reach_is_warned_of() {
        let warns = |addr: &str| warning_of_exposure(addr.parse().unwrap()).is_some();
        for open in ["0.0.0.0:9443", "[::]:9443", "198.51.100.7:9443", "[2001:db8::7]:9443"] {
            assert!(warns(open), "{open}");
        }
        for kept in [
            "127.0.0.1:9443",
            "[::1]:9443",
            "10.1.2.3:9443",
            "192.168.1.2:1",
            "[fd00::1]:9443",
            "[fe80::1]:1",
        ] {
            assert!(!warns(kept), "{kept}");
        }
    }

    #[test]
    fn a_scraper_gets_the_format_that_it_prefers() {
        use MetricsFormat::{OpenMetrics, Prometheus, Protobuf};
        const MESSAGES: &str =
            "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";
        const TEXT: &str = "application/openmetrics-text;version=1.0.0;q=0.8,\
                            application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, format) in [
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/plain, application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text; q=0.4, */*; q=0.1", OpenMetrics),
            (TEXT, OpenMetrics),
            (&format!("{MESSAGES},{TEXT}"), Protobuf),
            (&format!("{TEXT},{}", MESSAGES.replace(';', " ; ")), Protobuf),
            (&format!("{MESSAGES};q=0.6,{TEXT}"), OpenMetrics),
            (&format!("{MESSAGES};q=0,text/plain;q=0.1"), Prometheus),
            (&MESSAGES.replace("delimited", "text"), Prometheus),
            ("application/vnd.google.protobuf", Prometheus),
            ("application/openmetrics-text;q=x", Prometheus),
        ] {
            let fields = [httparse::Header { name: "Accept", value: accept.as_bytes() }];
            assert_eq!(accepted_format(&fields), format, "{accept}");
        }
    }
}
