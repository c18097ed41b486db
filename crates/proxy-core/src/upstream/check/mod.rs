//! Active health checks: how one is written, and how an address is checked.

pub(crate) mod checker;

use std::fmt;
use std::io::{self, Read, Write};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::{Duration, Instant};

use records::text::quantity;
use socket2::{SockAddr, Socket, Type};

use crate::accept::proxy_protocol::{self, ProxyProtocol};
use crate::tls::{TlsPeer, UpstreamTlsConfig};

/// Shortest and longest interval, in seconds.
const INTERVAL_RANGE: (f64, f64) = (0.1, 3_600.0);
/// Most checks in a row that change the state.
const STREAK_MAX: u32 = 100;
/// Longest time that a check may take; it is half the interval if that is shorter.
const TIMEOUT_MAX: Duration = Duration::from_secs(5);
/// How long a check waits for what an upstream says behind a handshake.
const LAST_WORD_TIMEOUT: Duration = Duration::from_millis(100);
/// The beginning of an answer that a check reads: `HTTP/1.1 200`.
const STATUS_BYTES: usize = 12;
/// How much more of an answer is read, and not used: a server may log that a client has left before its end.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// How upstreams are checked, such as `http:/healthz,status=200-299,interval=2s,rise=2,fall=3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamCheck {
    pub(super) kind: CheckKind,
    pub(super) interval: Duration,
    /// Checks in a row that must pass before an upstream is up again.
    pub(super) rise: u32,
    /// Checks in a row that must fail before it is down.
    pub(super) fall: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckKind {
    /// It must accept a connection.
    Tcp,
    /// It must complete a handshake, if it speaks TLS.
    Tls,
    /// It must answer a request, over TLS if it speaks TLS.
    Http(HttpCheck),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpCheck {
    path: String,
    statuses: RangeInclusive<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a check: {problem}; expected tcp, tls or http[:/PATH], such as \
     http:/healthz,status=200-299,interval=2s,rise=2,fall=3"
)]
pub struct ParseCheckError {
    text: String,
    problem: String,
}

impl UpstreamCheck {
    /// Whether it checks nothing that an upstream without TLS has.
    pub fn needs_tls(&self) -> bool {
        self.kind == CheckKind::Tls
    }

    /// How long the check of an address may take, whatever the address does.
    pub(super) fn timeout(&self) -> Duration {
        TIMEOUT_MAX.min(self.interval / 2)
    }
}

impl FromStr for UpstreamCheck {
    type Err = ParseCheckError;

    fn from_str(text: &str) -> Result<Self, ParseCheckError> {
        let refused = |problem: String| ParseCheckError { text: text.to_owned(), problem };
        let mut words = text.split(',').map(str::trim);
        let kind = match words.next().unwrap_or_default() {
            "tcp" => CheckKind::Tcp,
            "tls" => CheckKind::Tls,
            "http" => CheckKind::Http(HttpCheck { path: "/".to_owned(), statuses: 200..=399 }),
            word => match word.strip_prefix("http:") {
                Some(path) if path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) => {
                    CheckKind::Http(HttpCheck { path: path.to_owned(), statuses: 200..=399 })
                }
                Some(_) => return Err(refused("the path does not begin with / or is not printable".into())),
                None => return Err(refused("the kind is unknown".into())),
            },
        };
        let mut check = Self { kind, interval: Duration::from_secs(2), rise: 2, fall: 3 };
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            check.set(name, value).map_err(refused)?;
        }
        Ok(check)
    }
}

impl UpstreamCheck {
    /// Sets what one word says; the error is the problem.
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = || {
            let number = value.parse().ok().filter(|number| (1..=STREAK_MAX).contains(number));
            number.ok_or_else(|| format!("{name} is not a number from 1 to {STREAK_MAX}"))
        };
        match (name, &mut self.kind) {
            ("interval", _) => {
                let (low, high) = INTERVAL_RANGE;
                let seconds = quantity::parse(value, "s").filter(|time| (low..=high).contains(time));
                let allowed = || format!("interval is not {}", quantity::allowed(INTERVAL_RANGE, "s", false));
                self.interval = Duration::from_secs_f64(seconds.ok_or_else(allowed)?);
            }
            ("rise", _) => self.rise = number()?,
            ("fall", _) => self.fall = number()?,
            ("status", CheckKind::Http(http)) => {
                let (low, high) = value.split_once('-').unwrap_or((value, value));
                let statuses = low.parse().ok().zip(high.parse().ok()).map(|(low, high)| low..=high);
                let known = |range: &RangeInclusive<u16>| {
                    *range.start() >= 100 && *range.end() <= 599 && !range.is_empty()
                };
                let problem = "status is not a code from 100 to 599, or a range of them such as 200-299";
                http.statuses = statuses.filter(known).ok_or(problem)?;
            }
            ("status", _) => return Err("status goes with http".to_owned()),
            _ => return Err(format!("{name:?} is not a word of it")),
        }
        Ok(())
    }
}

impl fmt::Display for UpstreamCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            CheckKind::Tcp => f.write_str("tcp")?,
            CheckKind::Tls => f.write_str("tls")?,
            CheckKind::Http(HttpCheck { path, statuses }) => {
                write!(f, "http:{path},status={}-{}", statuses.start(), statuses.end())?;
            }
        }
        let interval = quantity::shown(self.interval.as_secs_f64(), "s");
        write!(f, ",interval={interval},rise={},fall={}", self.rise, self.fall)
    }
}

/// What is done at an address to learn whether it serves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe<'a> {
    /// The PROXY header that it expects; it then names the proxy itself.
    pub(super) header: Option<ProxyProtocol>,
    pub(super) tls: Option<(&'a UpstreamTlsConfig, &'a TlsPeer)>,
    /// A request to a host.
    pub(super) http: Option<(&'a HttpCheck, &'a str)>,
    pub(super) timeout: Duration,
}

impl Probe<'_> {
    /// Does it over a connection of its own, on a thread that may block.
    pub(super) fn run(&self, addr: &SockAddr) -> io::Result<()> {
        let until = Instant::now() + self.timeout;
        let socket = Socket::new(addr.domain(), Type::STREAM, None)?;
        match socket.connect_timeout(addr, self.timeout) {
            // A full backlog: the upstream is only busy.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            connected => connected?,
        }
        let mut stream = DeadlineSocket { socket, until };
        if let Some(version) = self.header {
            // An upstream that has closed the connection again has still accepted it.
            let _ = stream.write_all(&proxy_protocol::encode_local(version));
        }
        match (self.tls, self.http) {
            (None, None) => Ok(()),
            (None, Some((http, host))) => http.ask(&mut stream, host),
            (Some((config, peer)), None) => config.check(peer, &mut stream, |tls| {
                // With TLS 1.3 an upstream refuses the proxy's certificate, or that it has none, only now.
                tls.sock.until = tls.sock.until.min(Instant::now() + LAST_WORD_TIMEOUT);
                match tls.read(&mut [0]) {
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(error),
                    _ => Ok(()),
                }
            }),
            (Some((config, peer)), Some((http, host))) => {
                config.check(peer, &mut stream, |tls| http.ask(tls, host))
            }
        }
    }
}

impl HttpCheck {
    fn ask(&self, stream: &mut (impl Read + Write), host: &str) -> io::Result<()> {
        let Self { path, statuses } = self;
        let end = "User-Agent: tlsdash\r\nConnection: close\r\n\r\n";
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{end}");
        match stream.write_all(request.as_bytes()).and_then(|()| stream.flush()) {
            // It has ended already, and may have said why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            sent => sent?,
        }
        let mut answer = Vec::with_capacity(STATUS_BYTES);
        stream.take(STATUS_BYTES as u64).read_to_end(&mut answer)?;
        let _ = io::copy(&mut stream.take(ANSWER_BYTES_MAX), &mut io::sink());
        let status =
            answer.strip_prefix(b"HTTP/1.").and_then(|rest| std::str::from_utf8(rest.get(2..5)?).ok());
        match status.and_then(|status| status.parse().ok()) {
            Some(status) if statuses.contains(&status) => Ok(()),
            Some(status) => Err(io::Error::other(format!("GET {path} is answered with {status}"))),
            None => Err(io::Error::other(format!("GET {path} is not answered in HTTP/1.1"))),
        }
    }
}

/// A socket that blocks until a moment at most, however slowly its peer sends.
pub(crate) struct DeadlineSocket {
    socket: Socket,
    until: Instant,
}

impl DeadlineSocket {
    fn within<T>(
        &mut self,
        set_timeout: impl FnOnce(&Socket, Option<Duration>) -> io::Result<()>,
        act: impl FnOnce(&Socket) -> io::Result<T>,
    ) -> io::Result<T> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        set_timeout(&self.socket, Some(left))?;
        act(&self.socket).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        })
    }
}

impl Read for DeadlineSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.within(Socket::set_read_timeout, |mut socket| socket.read(buffer))
    }
}

impl Write for DeadlineSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.within(Socket::set_write_timeout, |mut socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_reads_back_as_it_is_shown() {
        for (text, shown) in [
            ("tcp", "tcp,interval=2s,rise=2,fall=3"),
            ("tls, fall=1", "tls,interval=2s,rise=2,fall=1"),
            ("http", "http:/,status=200-399,interval=2s,rise=2,fall=3"),
            (
                "http:/a=b?c,status=204,interval=500ms,rise=1",
                "http:/a=b?c,status=204-204,interval=500ms,rise=1,fall=3",
            ),
        ] {
            let check: UpstreamCheck = text.parse().unwrap();
            assert_eq!(check.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(check), "{text}");
        }
        let timeout = |text: &str| text.parse::<UpstreamCheck>().unwrap().timeout();
        assert_eq!([timeout("tcp"), timeout("tcp,interval=1h")], [Duration::from_secs(1), TIMEOUT_MAX]);
    }

    #[test]
    fn a_malformed_check_is_refused_with_its_problem() {
        for (text, problem) in [
            ("", "the kind is unknown"),
            ("https", "the kind is unknown"),
            ("http:healthz", "the path does not begin with /"),
            ("http:/a b", "the path does not begin with / or is not printable"),
            ("tcp,status=200", "status goes with http"),
            ("http,status=200-", "status is not a code from 100 to 599"),
            ("http,status=399-200", "status is not a code"),
            ("http,status=600", "status is not a code"),
            ("tcp,rise=0", "rise is not a number from 1 to 100"),
            ("tcp,fall=x", "fall is not a number from 1 to 100"),
            ("tcp,interval=50ms", "interval is not a time from 100ms to 60m, such as 10s"),
            ("tcp,interval=soon", "interval is not a time"),
            ("tcp,inter=2s", "\"inter\" is not a word of it"),
            ("tcp,", "\"\" is not a word of it"),
        ] {
            let error = text.parse::<UpstreamCheck>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("expected tcp, tls or http"), "{error}");
        }
    }
}
