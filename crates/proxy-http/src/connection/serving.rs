//! hyper's server, as the first task of a connection.

use records::kinds::HttpVersion;
use std::cell::RefCell;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use records::kinds::ConnectionOutcome;
use records::metrics::RequestFailure;

use crate::client::ClientConn;
use crate::config::limits::HttpLimits;
use crate::forward::forward;
use crate::forward::websocket::PendingTunnel;
use crate::runtime::io::WireIo;
use crate::runtime::tasks::Tasks;

/// Window of each stream for what the client sends.
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
/// Window of a connection for what the client sends.
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes that hyper buffers of each stream's response.
const STREAM_BUFFER_BYTES: usize = 64 << 10;
/// Fields of a header for which hyper needs no memory of its own.
const HEADER_FIELDS_DEFAULT: usize = 100;
/// Smallest buffer that hyper accepts.
const BUFFER_BYTES_MIN: usize = 8 << 10;

#[derive(Debug)]
pub(super) struct HttpConnEnd {
    pub(super) outcome: ConnectionOutcome,
    pub(super) detail: String,
    /// A request that hyper has refused itself, and with which status.
    pub(super) refused: Option<(RequestFailure, Option<u16>)>,
}

/// Begins to serve a client; its end goes to where the returned cell is.
pub(super) fn spawn(client: &Rc<ClientConn>, io: WireIo, tasks: &Tasks) -> Rc<RefCell<Option<HttpConnEnd>>> {
    let ended = Rc::new(RefCell::new(None));
    let (client, cell) = (Rc::clone(client), Rc::clone(&ended));
    if client.version == HttpVersion::Http2 {
        let executor = tasks.clone();
        tasks.spawn(async move {
            let ending = serve2(&client, io, executor).await;
            *cell.borrow_mut() = Some(ending);
        });
    } else {
        tasks.spawn(async move {
            let ending = serve1(&client, io).await;
            *cell.borrow_mut() = Some(ending);
        });
    }
    ended
}

/// How far a connection of hyper's was served.
enum Served {
    IsOver,
    /// Until the client sends something, which another one serves.
    Rests,
}

async fn serve1(client: &Rc<ClientConn>, io: WireIo) -> HttpConnEnd {
    let tunnel = PendingTunnel::default();
    let connection = loop {
        let service = service_fn(|request| forward(Rc::clone(client), Some(&tunnel), request));
        let mut connection = builder1(&client.worker.limits()).serve_connection(io.clone(), service);
        let served = poll_fn(|cx| {
            if client.take_shutdown(cx.waker()) {
                Pin::new(&mut connection).graceful_shutdown();
            }
            if client.take_rest() {
                return Poll::Ready(Ok(Served::Rests));
            }
            Pin::new(&mut connection).poll(cx).map_ok(|()| Served::IsOver)
        });
        match served.await {
            Ok(Served::IsOver) => break connection,
            Ok(Served::Rests) => drop(connection),
            Err(error) => return HttpConnEnd::of(&error),
        }
        poll_fn(|cx| io.poll_received(cx)).await;
    };
    let Some(tunnel) = tunnel.take() else { return HttpConnEnd::well() };
    let parts = connection.into_parts();
    match tunnel.run(parts.io, parts.read_buf).await {
        Ok(()) => HttpConnEnd::well(),
        Err(error) => HttpConnEnd {
            outcome: ConnectionOutcome::UpstreamBroken,
            detail: error.to_string(),
            refused: None,
        },
    }
}

fn builder1(limits: &HttpLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    // The connection has deadlines of its own: hyper's would also be that of an idle connection.
    builder.header_read_timeout(None);
    builder.max_buf_size(limits.header_bytes_max.max(BUFFER_BYTES_MIN));
    builder.max_header_size(limits.header_bytes_max);
    if limits.header_fields_max != HEADER_FIELDS_DEFAULT {
        builder.max_headers(limits.header_fields_max);
    }
    builder
}

async fn serve2(client: &Rc<ClientConn>, io: WireIo, executor: Tasks) -> HttpConnEnd {
    let limits = client.worker.limits();
    let owner = Rc::clone(client);
    client.tasks.get_or_init(|| executor.clone());
    let service = service_fn(move |request| forward(Rc::clone(&owner), None, request));
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(executor)
        .timer(client.worker.timers.clone())
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(STREAM_BUFFER_BYTES)
        .max_concurrent_streams(count(limits.streams_max))
        .max_header_list_size(count(limits.header_bytes_max))
        .enable_connect_protocol()
        .serve_connection(io, service);
    let mut connection = pin!(connection);
    let served = poll_fn(|cx| {
        if client.take_shutdown(cx.waker()) {
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    });
    match served.await {
        Err(error) if client.has_asked() || !is_end_of_stream(&error) => HttpConnEnd::of(&error),
        // A client may leave before it has sent the preface, as a health check does.
        Ok(()) | Err(_) => HttpConnEnd::well(),
    }
}

fn is_end_of_stream(error: &hyper::Error) -> bool {
    let of_io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    of_io.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof)
}

impl HttpConnEnd {
    fn well() -> Self {
        Self { outcome: ConnectionOutcome::Ended, detail: String::new(), refused: None }
    }

    /// Whether the upstream has broken a response, or a tunnel.
    pub(super) fn is_of_upstream(&self) -> bool {
        self.outcome == ConnectionOutcome::UpstreamBroken
    }

    fn of(error: &hyper::Error) -> Self {
        let outcome =
            if error.is_user() { ConnectionOutcome::UpstreamBroken } else { ConnectionOutcome::ClientBroken };
        Self { outcome, detail: describe(error), refused: refused(error) }
    }
}

/// An error with its causes.
fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// What hyper has refused, and with which status: it answers a head that it cannot parse itself.
fn refused(error: &hyper::Error) -> Option<(RequestFailure, Option<u16>)> {
    if !error.is_parse() {
        return None;
    }
    Some(if error.is_parse_version_h2() {
        (RequestFailure::Malformed, None)
    } else if !error.is_parse_too_large() {
        (RequestFailure::Malformed, Some(400))
    } else if error.to_string().contains("URI") {
        (RequestFailure::UriTooLong, Some(414))
    } else {
        (RequestFailure::HeaderTooLarge, Some(431))
    })
}
