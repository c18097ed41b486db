//! Clients that make calls of gRPC.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, StatusCode};
use rustls::ClientConfig;
use tokio::time::sleep;

use crate::Failure;
use crate::clients::run_streams;
use crate::ends::EndCounts;

/// Calls of a connection at once.
pub(crate) const CALLS: usize = 8;
pub(crate) const MESSAGE: &[u8] = b"\0\0\0\0\x05hello";
/// Messages of a long call, and the pause between them: it takes four seconds.
pub(crate) const MESSAGES: usize = 200;
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// A client that calls the methods in turn, each again and again.
pub(crate) async fn call_client(
    addr: SocketAddr,
    config: Arc<ClientConfig>,
    until: Instant,
    paths: [&'static str; 2],
    ends: Rc<EndCounts>,
) -> Result<(), Failure> {
    let stream = |client, n: usize| call_again(client, paths[n % paths.len()], until, Rc::clone(&ends));
    run_streams(addr, &config, CALLS, stream).await
}

async fn call_again(
    client: SendRequest<Bytes>,
    path: &str,
    until: Instant,
    ends: Rc<EndCounts>,
) -> Result<(), Failure> {
    let expected = match path.rsplit('/').next() {
        Some("missing") => (5, 0),
        Some("hello") => (0, 1),
        _ => (0, MESSAGES),
    };
    while Instant::now() < until {
        match call(&client, path).await? {
            CallEnd::Whole(status, messages) if (status, messages) == expected => ends.add_call(status),
            CallEnd::Whole(status, messages) => {
                return Err(format!("{path}: status {status} after {messages} messages").into());
            }
            CallEnd::BadGateway => ends.add_bad_gateway(&Method::POST)?,
            CallEnd::Cut => ends.add_cut()?,
        }
    }
    Ok(())
}

enum CallEnd {
    /// With its status, and how many messages came.
    Whole(u16, usize),
    BadGateway,
    Cut,
}

/// Makes a call. In a chat the client sends a message for each that it gets.
async fn call(client: &SendRequest<Bytes>, path: &str) -> Result<CallEnd, Failure> {
    let mut client = client.clone().ready().await?;
    let request = Request::post(format!("https://localhost{path}"));
    let request = request.header("content-type", "application/grpc").header("te", "trailers").body(())?;
    let is_chat = path.ends_with("/chat");
    let (response, mut messages) = client.send_request(request, false)?;
    messages.send_data(Bytes::from_static(MESSAGE), !is_chat)?;
    let Ok(response) = response.await else { return Ok(CallEnd::Cut) };
    match response.status() {
        StatusCode::OK => {}
        StatusCode::BAD_GATEWAY => return Ok(CallEnd::BadGateway),
        status => return Err(format!("{path}: status {status}").into()),
    }
    let in_head = grpc_status(response.headers());
    let (mut body, mut received) = (response.into_body(), 0);
    while let Some(data) = body.data().await {
        let Ok(data) = data else { return Ok(CallEnd::Cut) };
        received += data.len();
        body.flow_control().release_capacity(data.len())?;
        let replies = received / MESSAGE.len();
        if is_chat && replies < MESSAGES {
            sleep(PAUSE).await;
            // If it is cut meanwhile, the body says so.
            let _ = messages.send_data(Bytes::from_static(MESSAGE), replies + 1 == MESSAGES);
        }
    }
    let Ok(trailers) = body.trailers().await else { return Ok(CallEnd::Cut) };
    let status = in_head.or_else(|| grpc_status(&trailers?)).ok_or("a call without a status")?;
    Ok(CallEnd::Whole(status, received / MESSAGE.len()))
}

fn grpc_status(fields: &HeaderMap) -> Option<u16> {
    fields.get("grpc-status")?.to_str().ok()?.parse().ok()
}
