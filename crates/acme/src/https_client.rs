//! A small HTTPS client: one connection for each request, a bounded time and a bounded response.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::ClientConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use tls_client::{Trust, TrustError, verifier};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::schedule::{ASK_USUAL, RETRY_AFTER_MAX};

/// The time of a request, from looking up the name to the end of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The time of a connection to one address; a name may have others.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Content of a response at most; a chain of certificates has a few kilobytes.
const RESPONSE_BYTES_MAX: usize = 1 << 20;
/// The kind of content by which an authority says why it refuses (RFC 8555, 6.7).
const PROBLEM: &[u8] = b"application/problem+json";

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Clones share their state.
#[derive(Clone)]
pub(crate) struct HttpsClient {
    tls: TlsConnector,
    /// When the server wants to be asked again, by its last refusal. The ACME client does not tell. Taken once for each
    /// order.
    retry_at: Arc<Mutex<Option<SystemTime>>>,
}

impl HttpsClient {
    /// # Errors
    /// If the authorities cannot be read.
    pub(crate) fn new(trust: &Trust) -> Result<Self, TrustError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| TrustError::Library(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier(trust, &provider)?)
            .with_no_client_auth();
        Ok(Self { tls: Arc::new(config).into(), retry_at: Arc::default() })
    }

    /// When the server wants to be asked again, if it said so since the last call.
    pub(crate) fn take_retry_at(&self) -> Option<SystemTime> {
        self.retry_at.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    async fn send(self, mut request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, BoxError> {
        let (uri, is_post) = (request.uri().clone(), request.method() == Method::POST);
        if uri.scheme_str() != Some("https") {
            return Err(format!("{uri} is not a URL of https").into());
        }
        let host = uri.host().ok_or("the URL has no host")?.trim_matches(['[', ']']).to_owned();
        let socket = connect(&host, uri.port_u16().unwrap_or(443)).await?;
        let stream = self.tls.connect(ServerName::try_from(host)?, socket).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // It ends with the sender, or with the server's connection.
        tokio::spawn(connection);
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        request.headers_mut().insert(HOST, HeaderValue::from_str(authority)?);
        *request.uri_mut() =
            uri.path_and_query().map_or_else(|| Uri::from_static("/"), |path| path.clone().into());
        let (mut parts, body) = sender.send_request(request).await?.into_parts();
        let mut body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await?.to_bytes();
        let wait = bound_retry_after(&mut parts.headers);
        if parts.status.is_success() {
            // The ACME client takes no advice about renewal that does not say when to ask again.
            if !is_post {
                parts.headers.entry(RETRY_AFTER).or_insert(ASK_USUAL.as_secs().into());
            }
            return Ok(BytesResponse { parts, body: Box::new(body) });
        }
        if let Some(wait) = wait {
            *self.retry_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(SystemTime::now() + wait);
        }
        // The ACME client takes any response to GET for what it asked for.
        if !is_post {
            return Err(parts.status.to_string().into());
        }
        // What is in front of an authority refuses in words of its own.
        if !parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(PROBLEM)) {
            body = serde_json::json!({"detail": format!("{uri}: {}", parts.status)}).to_string().into();
        }
        Ok(BytesResponse { parts, body: Box::new(body) })
    }
}

/// Connects to the first address of the host that answers.
async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for addr in lookup_host((host, port)).await? {
        refused = match timeout(CONNECT_TIMEOUT, TcpStream::connect(addr)).await {
            Ok(Ok(socket)) => return Ok(socket),
            Ok(Err(error)) => error,
            Err(_) => io::ErrorKind::TimedOut.into(),
        };
    }
    Err(refused)
}

/// Takes the seconds of `Retry-After`, and puts them between a second and a week for the ACME client, which would
/// ask without a pause, or overflow its clock. A date, which no authority is known to send, is removed.
fn bound_retry_after(headers: &mut HeaderMap) -> Option<Duration> {
    let said = headers.remove(RETRY_AFTER)?;
    let seconds: u64 = said.to_str().ok()?.trim().parse().ok()?;
    let seconds = seconds.clamp(1, RETRY_AFTER_MAX.as_secs());
    headers.insert(RETRY_AFTER, seconds.into());
    Some(Duration::from_secs(seconds))
}

impl HttpClient for HttpsClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let (client, uri) = (self.clone(), request.uri().clone());
        Box::pin(async move {
            let sent = timeout(REQUEST_TIMEOUT, client.send(request)).await;
            let failure: BoxError = match sent {
                Ok(Ok(response)) => return Ok(response),
                Ok(Err(error)) => format!("{uri}: {error}").into(),
                Err(_) => format!("{uri}: no answer within {} s", REQUEST_TIMEOUT.as_secs()).into(),
            };
            Err(Error::Other(failure))
        })
    }
}
