//! Upstreams of HTTP/2: they answer calls of gRPC, and take `WebSockets`.

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::Failure;
use crate::calls::{MESSAGE, MESSAGES, PAUSE};
use crate::upstream::{Stream, WORK};

/// Streams of a connection of which one is refused: it must be sent again.
const REFUSE_EVERY: u32 = 100;
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Serves HTTP/2 on a connection. A restart to an odd number announces its end and finishes what was begun; one to an even
/// number closes it at once.
pub(crate) async fn serve2(
    stream: Box<dyn Stream>,
    mut restarts: watch::Receiver<u64>,
) -> Result<(), Failure> {
    let mut builder = h2::server::Builder::new();
    let mut connection = builder.enable_connect_protocol().handshake(stream).await?;
    let mut streams: u32 = 0;
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(accepted) = accepted else { return Ok(()) };
                let (request, mut respond) = accepted?;
                streams += 1;
                if streams.is_multiple_of(REFUSE_EVERY) {
                    respond.send_reset(Reason::REFUSED_STREAM);
                } else {
                    tokio::spawn(answer(request, respond));
                }
            }
            changed = restarts.changed() => {
                if changed.is_err() || restarts.borrow().is_multiple_of(2) {
                    return Ok(());
                }
                connection.graceful_shutdown();
            }
        }
    }
}

async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>) -> Result<(), Failure> {
    let (head, mut body) = request.into_parts();
    let response = Response::new(());
    let mut messages = match head.uri.path().rsplit('/').next() {
        Some("missing") => {
            let mut response = response;
            response.headers_mut().insert(GRPC_STATUS, HeaderValue::from_static("5"));
            read_all(&mut body).await?;
            respond.send_response(response, true)?;
            return Ok(());
        }
        Some("socket") => {
            let mut messages = respond.send_response(response, false)?;
            // It ends with a message that begins with a `q`, and all others are the same.
            while let Some(data) = read(&mut body).await?
                && !data.contains(&b'q')
            {
                messages.send_data(data, false)?;
            }
            messages.send_data(Bytes::new(), true)?;
            return read_all(&mut body).await;
        }
        Some("chat") => {
            let mut messages = respond.send_response(response, false)?;
            while let Some(data) = read(&mut body).await? {
                messages.send_data(data, false)?;
            }
            messages
        }
        Some("numbers") => {
            read_all(&mut body).await?;
            let mut messages = respond.send_response(response, false)?;
            for _ in 0..MESSAGES {
                messages.send_data(Bytes::from_static(MESSAGE), false)?;
                sleep(PAUSE).await;
            }
            messages
        }
        _ => {
            read_all(&mut body).await?;
            sleep(WORK).await;
            let mut messages = respond.send_response(response, false)?;
            messages.send_data(Bytes::from_static(MESSAGE), false)?;
            messages
        }
    };
    let trailers = HeaderMap::from_iter([(GRPC_STATUS, HeaderValue::from_static("0"))]);
    Ok(messages.send_trailers(trailers)?)
}

async fn read(body: &mut RecvStream) -> Result<Option<Bytes>, h2::Error> {
    let data = body.data().await.transpose()?;
    body.flow_control().release_capacity(data.as_ref().map_or(0, Bytes::len))?;
    Ok(data)
}

async fn read_all(body: &mut RecvStream) -> Result<(), Failure> {
    while read(body).await?.is_some() {}
    Ok(())
}
