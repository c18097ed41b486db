//! Honest clients that are slow, and clients that ask for much and read nothing.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::ext::Protocol;
use http::{Method, Request, StatusCode};
use http_codec::frame::{self, PREFACE, kind, setting};
use http_codec::hpack::{Indexing, encode_field};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::sleep;

use crate::ends::RequestEnds;
use crate::upstream::{LONG_BYTES, MESSAGE_BYTES, content_length, read_head};
use crate::{Failure, connect};

/// What slow clients read or write at once, and the pause after it: 2 MB/s.
const PIECE_BYTES: usize = 20_000;
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes of a slow request's body: it takes two seconds.
const UPLOAD_BYTES: usize = 200 * PIECE_BYTES;
/// Messages over a WebSocket, which its upstream sends back.
const MESSAGES: usize = 200;

/// Streams of a client that reads nothing.
const UNREAD_STREAMS: u32 = 128;
/// How long it stays.
const UNREAD_TIME: Duration = Duration::from_secs(8);

/// An honest client, and what it does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SlowClient {
    Download1,
    Download2,
    Upload1,
    WebSocket1,
    WebSocket1To2,
    WebSocket2To1,
    WebSocket2,
}

impl SlowClient {
    pub(crate) const ALL: [Self; 7] = [
        Self::Download1,
        Self::Download2,
        Self::Upload1,
        Self::WebSocket1,
        Self::WebSocket1To2,
        Self::WebSocket2To1,
        Self::WebSocket2,
    ];

    /// # Errors
    /// When anything but a whole response comes.
    pub(crate) async fn run(
        self,
        addr: SocketAddr,
        config: Arc<ClientConfig>,
        until: Instant,
        ends: Rc<RequestEnds>,
    ) -> Result<(), Failure> {
        while Instant::now() < until {
            let ended = match self {
                Self::Download1 => download1(addr, &config).await,
                Self::Download2 => download2(addr, &config).await,
                Self::Upload1 => upload1(addr, &config).await,
                Self::WebSocket1 => web_socket1(addr, &config, "/steady/socket").await,
                Self::WebSocket1To2 => web_socket1(addr, &config, "/steady2/socket").await,
                Self::WebSocket2To1 => web_socket2(addr, &config, "/steady/socket").await,
                Self::WebSocket2 => web_socket2(addr, &config, "/steady2/socket").await,
            };
            ended.map_err(|error| format!("an honest client was cut: {self:?}: {error}"))?;
            *ends.slow.borrow_mut().entry(self).or_default() += 1;
        }
        Ok(())
    }
}

fn expect_bytes(expected: usize, bytes: usize) -> Result<(), Failure> {
    if bytes == expected { Ok(()) } else { Err(format!("{bytes} of {expected} bytes").into()) }
}

async fn download1(addr: SocketAddr, config: &Arc<ClientConfig>) -> Result<(), Failure> {
    let mut stream = BufReader::new(connect(addr, config, "http/1.1").await?);
    stream.write_all(b"GET /steady/long HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let head = read_head(&mut stream).await?.ok_or("no response")?;
    let (mut piece, mut bytes) = (vec![0; PIECE_BYTES], 0);
    loop {
        match stream.read(&mut piece).await? {
            0 => return expect_bytes(content_length(&head), bytes),
            n => bytes += n,
        }
        sleep(PAUSE).await;
    }
}

async fn download2(addr: SocketAddr, config: &Arc<ClientConfig>) -> Result<(), Failure> {
    let (client, connection) = h2::client::handshake(connect(addr, config, "h2").await?).await?;
    let connection = tokio::task::spawn_local(connection);
    let request = Request::get("https://localhost/steady/long").body(())?;
    let mut body = client.ready().await?.send_request(request, true)?.0.await?.into_body();
    let (mut bytes, mut piece_bytes) = (0, 0);
    while let Some(data) = body.data().await {
        let data = data?;
        bytes += data.len();
        piece_bytes += data.len();
        if piece_bytes >= PIECE_BYTES {
            sleep(PAUSE).await;
            piece_bytes = 0;
        }
        body.flow_control().release_capacity(data.len())?;
    }
    drop(body);
    connection.await??;
    expect_bytes(LONG_BYTES.0, bytes)
}

async fn upload1(addr: SocketAddr, config: &Arc<ClientConfig>) -> Result<(), Failure> {
    let mut stream = BufReader::new(connect(addr, config, "http/1.1").await?);
    let head = format!(
        "POST /steady/upload HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {UPLOAD_BYTES}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    for _ in 0..UPLOAD_BYTES / PIECE_BYTES {
        stream.write_all(&vec![b'x'; PIECE_BYTES]).await?;
        stream.flush().await?;
        sleep(PAUSE).await;
    }
    let head = read_head(&mut stream).await?.ok_or("no response")?;
    let mut body = Vec::new();
    stream.read_to_end(&mut body).await?;
    expect_bytes(content_length(&head), body.len())
}

async fn web_socket1(addr: SocketAddr, config: &Arc<ClientConfig>, path: &str) -> Result<(), Failure> {
    let mut stream = BufReader::new(connect(addr, config, "http/1.1").await?);
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let head = read_head(&mut stream).await?.ok_or("no response")?;
    if !head.starts_with("HTTP/1.1 101 ") {
        return Err(head.into());
    }
    for _ in 0..MESSAGES {
        let mut message = [b'x'; MESSAGE_BYTES];
        stream.write_all(&message).await?;
        stream.flush().await?;
        stream.read_exact(&mut message).await?;
        sleep(PAUSE).await;
    }
    // The upstream ends it then.
    stream.write_all(&[b'q'; MESSAGE_BYTES]).await?;
    stream.flush().await?;
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await?;
    expect_bytes(0, rest.len())
}

async fn web_socket2(addr: SocketAddr, config: &Arc<ClientConfig>, path: &str) -> Result<(), Failure> {
    let (client, connection) = h2::client::handshake(connect(addr, config, "h2").await?).await?;
    let connection = tokio::task::spawn_local(connection);
    let mut client = client.ready().await?;
    while !client.is_extended_connect_protocol_enabled() {
        sleep(PAUSE).await;
    }
    let request = Request::builder().method(Method::CONNECT).uri(format!("https://localhost{path}"));
    let request = request.header("sec-websocket-version", "13").extension(Protocol::from_static("websocket"));
    let (response, mut stream) = client.send_request(request.body(())?, false)?;
    let response = response.await?;
    if response.status() != StatusCode::OK {
        return Err(response.status().as_str().into());
    }
    let mut body = response.into_body();
    for _ in 0..MESSAGES {
        stream.send_data(Bytes::from_static(&[b'x'; MESSAGE_BYTES]), false)?;
        let mut bytes = 0;
        while bytes < MESSAGE_BYTES {
            let data = body.data().await.ok_or("the WebSocket has ended")??;
            body.flow_control().release_capacity(data.len())?;
            bytes += data.len();
        }
        sleep(PAUSE).await;
    }
    stream.send_data(Bytes::from_static(&[b'q'; MESSAGE_BYTES]), true)?;
    if let Some(rest) = body.data().await {
        expect_bytes(0, rest?.len())?;
    }
    drop((client, stream, body));
    Ok(connection.await??)
}

/// Asks for long responses over all streams, with windows as wide as can be, and reads nothing.
pub(crate) async fn read_nothing(
    addr: SocketAddr,
    config: Arc<ClientConfig>,
    until: Instant,
    ends: Rc<RequestEnds>,
) -> Result<(), Failure> {
    const WIDE: u32 = 1 << 30;
    let fields =
        [(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/steady/long")];
    let mut block = Vec::new();
    for (name, value) in fields {
        encode_field(name.as_bytes(), value.as_bytes(), Indexing::Plain, &mut block);
    }
    let mut requests = PREFACE.to_vec();
    frame::head(&mut requests, 6, kind::SETTINGS, 0, 0);
    requests.extend_from_slice(&setting::INITIAL_WINDOW_SIZE.to_be_bytes());
    requests.extend_from_slice(&WIDE.to_be_bytes());
    frame::window_update(&mut requests, 0, WIDE);
    (0..UNREAD_STREAMS).for_each(|nth| frame::headers(&mut requests, 2 * nth + 1, &block, true));
    while Instant::now() < until {
        let mut stream = connect(addr, &config, "h2").await?;
        stream.write_all(&requests).await?;
        stream.flush().await?;
        ends.unread.set(ends.unread.get() + u64::from(UNREAD_STREAMS));
        sleep(UNREAD_TIME).await;
    }
    Ok(())
}
