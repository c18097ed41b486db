//! Asks a store over HTTP, and sends to one.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::http::header::CONNECTION;
use ureq::http::{HeaderValue, StatusCode, Version};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::WithBody;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{ConnectionDetails, Connector, DefaultConnector, Transport};
use ureq::{Agent, Body, RequestBuilder};

use crate::url::{Parameters, StoreUrl};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Until the first byte of an answer, and between two: a store may search for long.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Until the first byte of an answer to entries.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Until the last byte of an answer.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);
/// A connection that is kept shows that the other end was not started anew. Intervals last up to a minute.
const IDLE_MAX: Duration = Duration::from_secs(90);
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
const HEADER_BYTES_MAX: usize = 32 << 10;
/// The bytes of one answer, uncompressed.
const BODY_BYTES_MAX: u64 = 256 << 20;
/// The bytes of one line of an answer. VictoriaLogs stores entries of at most 2 MiB.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// The bytes of a file with a secret, a certificate or a key.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The bytes of an answer that are shown when a store refuses.
const REASON_BYTES: u64 = 512;
/// The characters of an unexpected answer that are shown.
const SHOWN_CHARS: usize = 60;

/// By these VictoriaLogs keeps entries together: the first three are its default. Roll-ups apart are found much faster.
const STREAM_FIELDS: &str = "_MACHINE_ID,_HOSTNAME,_SYSTEMD_UNIT,TLSDASH_MINUTE,TLSDASH_HOUR";

const WRONG_PLACE: &str = "; is the path of the URL right?";

/// Why a store cannot be asked, in words.
pub(crate) type Reason = String;

#[derive(Clone, Debug)]
pub(crate) struct Client {
    agent: Agent,
    endpoint: String,
    authorization: Option<HeaderValue>,
    tenant: Option<(u32, u32)>,
    connects: Connects,
    last: Option<LastSend>,
}

/// The last [`Client::send`].
#[derive(Clone, Copy, Debug)]
struct LastSend {
    /// The connections that had been made.
    connects: u64,
    /// The response did not say that the connection ends.
    is_kept: bool,
    /// The connection was a new one, though the former was to be kept.
    lost_former: bool,
}

/// Counts connections.
#[derive(Clone, Debug, Default)]
struct Connects(Arc<AtomicU64>);

impl<T: Transport> Connector<T> for Connects {
    type Out = T;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<T>) -> Result<Option<T>, ureq::Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(chained)
    }
}

/// What became of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Over the connection of the former request, or over another one.
    Taken { is_same: bool },
    /// They were taken over a new connection: the former one, which was to be kept, was lost, perhaps with its receiver.
    TakenAnew,
    /// They are too many bytes for one request.
    TooLarge,
}

impl Client {
    /// Reads the secrets and certificates that the URL names. Requests go to the `path` behind that of the URL. Does not
    /// connect.
    pub(crate) fn new(url: &StoreUrl, path: &str) -> Result<Self, Reason> {
        let parameters = &url.parameters;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect might lead elsewhere, with the credentials.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .user_agent(concat!("tlsdash/", env!("CARGO_PKG_VERSION")))
            .max_response_header_size(HEADER_BYTES_MAX)
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(RESPONSE_TIMEOUT))
            .timeout_per_read(Some(RESPONSE_TIMEOUT))
            .timeout_recv_body(Some(BODY_TIMEOUT))
            .timeout_per_write(Some(WRITE_TIMEOUT))
            .max_idle_age(IDLE_MAX);
        if url.base.starts_with("https:") {
            config = config.tls_config(tls(parameters)?);
        }
        let connects = Connects::default();
        let connector = DefaultConnector::new().chain(connects.clone());
        Ok(Self {
            agent: Agent::with_parts(config.build(), connector, DefaultResolver::default()),
            connects,
            last: None,
            endpoint: format!("{}{path}", url.base),
            authorization: authorization(parameters)?,
            tenant: parameters.tenant,
        })
    }

    #[cfg(test)]
    pub(crate) fn set_response_timeout(&mut self, timeout: Duration) {
        let config =
            Agent::config_builder().timeout_recv_response(Some(timeout)).timeout_per_read(Some(timeout));
        self.agent = config.build().into();
    }

    /// Sends a query, and passes each line of the answer to `each`. Returns the bytes of the answer.
    pub(crate) fn ask(
        &self,
        query: &str,
        each: &mut dyn FnMut(&[u8]) -> Result<(), Reason>,
    ) -> Result<u64, Reason> {
        let form = [("query", query), ("allow_partial_response", "0")];
        let answer = self.request().send_form(form).map_err(|error| reason(&error))?;
        let (head, body) = answer.into_parts();
        if head.status != StatusCode::OK {
            return Err(refusal(head.status, body));
        }
        read_lines(body, each)
    }

    /// Sends entries in the Journal Export Format. Waits for an answer for [`SEND_TIMEOUT`] only.
    pub(crate) fn send(&mut self, entries: &[u8]) -> Result<Sent, Reason> {
        let former = self.last.take();
        let request = self.request().content_type("application/vnd.fdo.journal");
        let request = request.header("VL-Stream-Fields", STREAM_FIELDS);
        let request = request.config().timeout_recv_response(Some(SEND_TIMEOUT)).build();
        let (head, mut body) = request.send(entries).map_err(|error| reason(&error))?.into_parts();
        if head.status == StatusCode::PAYLOAD_TOO_LARGE {
            return Ok(Sent::TooLarge);
        }
        if !head.status.is_success() {
            return Err(refusal(head.status, body));
        }
        // Read to its end, so that the connection serves the next request.
        let _ = body.with_config().limit(REASON_BYTES).read_to_vec();
        let says_close = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"close");
        let ends = head.version < Version::HTTP_11 || head.headers.get_all(CONNECTION).iter().any(says_close);
        let connects = self.connects.0.load(Ordering::Relaxed);
        let lost_former = former.is_some_and(|former| former.is_kept && former.connects != connects);
        self.last = Some(LastSend { connects, is_kept: !ends, lost_former });
        // A server that ends each connection without a word does not get everything twice.
        let is_lost = lost_former && former.is_some_and(|former| !former.lost_former);
        let is_same = former.is_some_and(|former| former.connects == connects);
        Ok(if is_lost { Sent::TakenAnew } else { Sent::Taken { is_same } })
    }

    fn request(&self) -> RequestBuilder<WithBody> {
        let mut request = self.agent.post(&self.endpoint);
        if let Some(value) = &self.authorization {
            request = request.header("Authorization", value);
        }
        if let Some((account, project)) = self.tenant {
            request =
                request.header("AccountID", account.to_string()).header("ProjectID", project.to_string());
        }
        request
    }
}

/// Passes each line to `each`.
fn read_lines(body: Body, each: &mut dyn FnMut(&[u8]) -> Result<(), Reason>) -> Result<u64, Reason> {
    // One more byte than is allowed shows that there are more.
    let mut lines = BufReader::new(body.into_reader().take(BODY_BYTES_MAX + 1));
    let (mut line, mut total) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = (&mut lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        let read = read.map_err(|error| format!("the answer ended early: {error}"))? as u64;
        total += read;
        if total > BODY_BYTES_MAX {
            let mib = BODY_BYTES_MAX >> 20;
            return Err(format!("an answer has more than {mib} MiB: narrow it down with ?query=FILTER"));
        }
        if read == 0 {
            return Ok(total);
        }
        if read == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            return Err(format!("a line of an answer has more than {} MiB", LINE_BYTES_MAX >> 20));
        }
        let text = line.trim_ascii_end();
        if !text.is_empty() {
            each(text)?;
        }
    }
}

/// The beginning of what a store said, printable.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text =
        records::text::clean::line(&String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN_CHARS)]));
    text.trim().chars().take(SHOWN_CHARS).collect()
}

/// What an answer says that is not 200.
fn refusal(status: StatusCode, body: Body) -> Reason {
    let mut text = Vec::new();
    // What arrived before an error is said too.
    let _ = body.into_reader().take(REASON_BYTES).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    // Of a page, its first line.
    let text = records::text::clean::line(text.trim().lines().next().unwrap_or_default());
    let advice = match status.as_u16() {
        401 | 403 => "; name a token with ?token-file=PATH, or TLSDASH_LOGS_TOKEN",
        300..=399 => "; redirects are not followed: name the place itself",
        400 if text.contains("unsupported path") => WRONG_PLACE,
        404 => WRONG_PLACE,
        _ => "",
    };
    let colon = if text.is_empty() { "" } else { ": " };
    format!("it answers {status}{colon}{text}{advice}")
}

fn reason(error: &ureq::Error) -> Reason {
    match error {
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            "connection refused; does a store run there?".to_owned()
        }
        ureq::Error::Io(error) => tls_client::io_reason(error),
        ureq::Error::Rustls(error) => tls_client::reason(error),
        ureq::Error::Timeout(phase) => format!("no answer in time ({phase})"),
        other => other.to_string(),
    }
}

fn authorization(parameters: &Parameters) -> Result<Option<HeaderValue>, Reason> {
    let Parameters { token_file, user, password_file, .. } = parameters;
    let text = if let Some(user) = user {
        let password = match password_file {
            Some(path) => secret(path)?,
            None => variable("TLSDASH_LOGS_PASSWORD")?
                .ok_or("user needs password-file=PATH, or TLSDASH_LOGS_PASSWORD")?,
        };
        format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
    } else {
        let token = match token_file {
            Some(path) => Some(secret(path)?),
            None => variable("TLSDASH_LOGS_TOKEN")?,
        };
        let Some(token) = token else { return Ok(None) };
        format!("Bearer {token}")
    };
    let mut value =
        HeaderValue::try_from(text).map_err(|_| "the token has characters that no header may have")?;
    value.set_sensitive(true);
    Ok(Some(value))
}

/// A variable of the environment; `None` if it is empty or not set.
fn variable(name: &str) -> Result<Option<String>, Reason> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    value.into_string().map(Some).map_err(|_| format!("{name} is not UTF-8"))
}

/// The text of a file, without the end of its line.
fn secret(path: &Path) -> Result<String, Reason> {
    let text = String::from_utf8(contents(path)?).map_err(|_| format!("{} is not UTF-8", path.display()))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() { Err(format!("{} is empty", path.display())) } else { Ok(text.to_owned()) }
}

fn contents(path: &Path) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(bytes)
}

fn tls(parameters: &Parameters) -> Result<TlsConfig, Reason> {
    let authorities =
        tls_client::authorities(parameters.cafile.as_deref()).map_err(|error| error.to_string())?;
    let roots: Vec<_> = authorities.iter().map(|der| Certificate::from_der(der).to_owned()).collect();
    let mut config = TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(tls_client::provider());
    if let (Some(cert), Some(key)) = (&parameters.cert, &parameters.key) {
        tls_client::check_identity(cert, key).map_err(|error| error.to_string())?;
        let chain: Vec<_> = parse_pem(&contents(cert)?)
            .filter_map(|item| if let Ok(PemItem::Certificate(cert)) = item { Some(cert) } else { None })
            .collect();
        let private = PrivateKey::from_pem(&contents(key)?).map_err(|error| reason(&error))?;
        config = config.client_cert(Some(ClientCert::new_with_certs(&chain, private)));
    }
    Ok(config.build())
}
