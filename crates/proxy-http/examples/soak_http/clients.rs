//! Clients that send one request after another, over HTTP/1.1 and HTTP/2.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request, StatusCode};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::ends::EndCounts;
use crate::upstream::{LARGE_BYTES, content_length, read_head};
use crate::{Failure, connect};

/// Streams of a connection that speaks HTTP/2.
pub(crate) const STREAMS: usize = 16;
/// Bytes of a request's body.
const UPLOAD_BYTES: usize = 1_000;

/// What clients send in turn: the method, the path, and how long the response is.
const REQUESTS: [(Method, &str, usize); 3] =
    [(Method::GET, "/small", 5), (Method::GET, "/large", LARGE_BYTES.0), (Method::POST, "/upload", 5)];

/// A client of HTTP/1.1 below `route`, on a new connection wherever the proxy has ended the one before.
pub(crate) async fn client1(
    addr: SocketAddr,
    config: Arc<ClientConfig>,
    until: Instant,
    (route, first): (&'static str, usize),
    ends: Rc<EndCounts>,
) -> Result<(), Failure> {
    let mut requests = REQUESTS.iter().cycle().skip(first);
    while Instant::now() < until {
        let mut stream = BufReader::new(connect(addr, &config, "http/1.1").await?);
        while Instant::now() < until {
            let Some((method, path, length)) = requests.next() else { break };
            match exchange1(&mut stream, method, &format!("{route}{path}")).await {
                Ok(Some((200, is_last, bytes))) if bytes == *length => {
                    ends.add_whole();
                    if is_last {
                        break;
                    }
                }
                Ok(Some((502, is_last, _))) => {
                    ends.add_bad_gateway(method)?;
                    if is_last {
                        break;
                    }
                }
                Ok(Some((status, ..))) => {
                    return Err(format!("{method} {route}{path}: status {status}").into());
                }
                Ok(None) => return Err(format!("{method} {route}{path}: closed without a response").into()),
                Err(_) => {
                    ends.add_cut()?;
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

/// A client of HTTP/2 below `route` with many streams.
pub(crate) async fn client2(
    addr: SocketAddr,
    config: Arc<ClientConfig>,
    until: Instant,
    route: &'static str,
    ends: Rc<EndCounts>,
) -> Result<(), Failure> {
    let stream = |client, n| requests2(client, n, until, route, Rc::clone(&ends));
    run_streams(addr, &config, STREAMS, stream).await
}

/// Runs so many streams on a connection of HTTP/2; `stream` gets the number of each.
pub(crate) async fn run_streams<F: Future<Output = Result<(), Failure>> + 'static>(
    addr: SocketAddr,
    config: &Arc<ClientConfig>,
    count: usize,
    stream: impl Fn(SendRequest<Bytes>, usize) -> F,
) -> Result<(), Failure> {
    let (client, connection) = h2::client::handshake(connect(addr, config, "h2").await?).await?;
    let connection = tokio::task::spawn_local(connection);
    let mut streams = tokio::task::JoinSet::new();
    for n in 0..count {
        streams.spawn_local(stream(client.clone(), n));
    }
    while let Some(ended) = streams.join_next().await {
        ended??;
    }
    drop(client);
    Ok(connection.await??)
}

async fn requests2(
    client: SendRequest<Bytes>,
    first: usize,
    until: Instant,
    route: &str,
    ends: Rc<EndCounts>,
) -> Result<(), Failure> {
    for (method, path, length) in REQUESTS.iter().cycle().skip(first) {
        if Instant::now() >= until {
            break;
        }
        match exchange2(&client, method, &format!("{route}{path}")).await? {
            Some((StatusCode::OK, bytes)) if bytes == *length => ends.add_whole(),
            Some((StatusCode::BAD_GATEWAY, _)) => ends.add_bad_gateway(method)?,
            Some((status, bytes)) => {
                return Err(format!("{method} {route}{path}: status {status} with {bytes} bytes").into());
            }
            None => ends.add_cut()?,
        }
    }
    Ok(())
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
