//! The address of an upstream: parsing, resolving, probing.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use socket2::SockAddr;

use crate::accept::proxy_protocol::ProxyProtocol;
use crate::tls::{TlsPeer, UpstreamName, UpstreamTls, UpstreamTlsConfig};
use crate::upstream::check::Probe;
use crate::upstream::names::addresses::UpstreamAddresses;
use crate::upstream::names::resolver::Resolver;

/// How long [`Upstream::probe`] waits for each address.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// Largest weight of an upstream.
pub(crate) const WEIGHT_MAX: u16 = 256;

/// Begin what may stand behind an address, each after a comma.
const WEIGHT: &str = "weight=";
const NAME: &str = "name=";

/// The application behind the proxy: where it is, and what it is spoken to in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub scheme: UpstreamScheme,
    pub addr: UpstreamAddr,
    /// Its share of connections beside other upstreams, from 1 to 256.
    pub weight: u16,
    /// The name that it is asked for by TLS, and that its certificate must have, over that of all upstreams.
    pub tls_name: Option<UpstreamName>,
}

/// What is spoken with an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamScheme {
    /// The clients' bytes, or HTTP/1.1.
    #[default]
    Plain,
    /// The same over TLS.
    Tls,
    /// HTTP/2 from the first byte (RFC 9113, section 3.3).
    H2c,
    /// HTTP/2 over TLS.
    H2,
}

/// Where an upstream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamAddr {
    /// A stream socket in the file system; its path is looked up for each connection.
    Unix(PathBuf),
    /// A host and port. A name is resolved again while the proxy runs, and all its addresses are used.
    Tcp {
        /// A name or an address, without brackets.
        host: String,
        port: u16,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not an upstream: {problem}; expected unix:/path or host:port, for TLS with tls:// in front, \
     for HTTP/2 with h2c:// or over TLS h2://, and behind it ,weight=N for a share or ,name=NAME for a name in TLS"
)]
pub struct ParseUpstreamError {
    text: String,
    problem: &'static str,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot resolve the upstream {upstream}: {source}")]
pub struct ResolveError {
    upstream: Upstream,
    source: io::Error,
}

#[derive(Debug, thiserror::Error)]
#[error("the upstream {upstream} cannot be reached: {source}")]
pub struct ProbeError {
    upstream: Upstream,
    source: io::Error,
}

/// An upstream ready to be connected to.
#[derive(Debug)]
pub enum UpstreamTarget {
    Unix(UnixAddr),
    Tcp(UpstreamAddresses),
}

impl Upstream {
    /// A plaintext upstream at a path.
    pub fn unix(path: impl Into<PathBuf>) -> Self {
        Self {
            scheme: UpstreamScheme::Plain,
            addr: UpstreamAddr::Unix(path.into()),
            weight: 1,
            tls_name: None,
        }
    }

    /// The same without its weight: its name, and what tells two upstreams apart.
    #[must_use]
    pub fn unweighted(&self) -> Self {
        Self { weight: 1, ..self.clone() }
    }

    /// Whether it speaks TLS.
    pub fn is_tls(&self) -> bool {
        matches!(self.scheme, UpstreamScheme::Tls | UpstreamScheme::H2)
    }

    /// Whom TLS is spoken with, if it is. Its name is its own one or its host; a path has none, and stands for
    /// `localhost`.
    pub(crate) fn tls_peer(&self) -> Option<TlsPeer> {
        let host = match &self.addr {
            UpstreamAddr::Unix(_) => "localhost",
            UpstreamAddr::Tcp { host, .. } => host,
        };
        let is_named = self.tls_name.is_some();
        let name = || self.tls_name.clone().or_else(|| host.parse().ok());
        let peer = |name| TlsPeer { name, is_named, is_http2: self.scheme.is_http2() };
        self.is_tls().then(name).flatten().map(peer)
    }

    /// Connects once, as a check at the start, with TLS up to the end of the handshake, and closes the connection. An
    /// upstream that expects a PROXY header gets a header that names the proxy itself.
    ///
    /// # Errors
    /// If the name cannot be resolved, none of its addresses accepts within a second, or no TLS can be spoken with it.
    pub fn probe(&self, header: Option<ProxyProtocol>, tls: &UpstreamTls) -> Result<(), ProbeError> {
        let failed = |source| ProbeError { upstream: self.unweighted(), source };
        let addrs: Vec<SockAddr> = match &self.addr {
            UpstreamAddr::Unix(path) => vec![SockAddr::unix(path).map_err(failed)?],
            UpstreamAddr::Tcp { host, port } => {
                let addrs = Resolver::default().resolve(host, *port).map_err(failed)?;
                addrs.into_iter().map(Into::into).collect()
            }
        };
        let peer = self.tls_peer();
        let config = peer.as_ref().map(|_| UpstreamTlsConfig::new(tls)).transpose();
        let config = config.map_err(|error| failed(io::Error::other(error)))?;
        let probe =
            Probe { header, tls: config.as_ref().zip(peer.as_ref()), http: None, timeout: PROBE_TIMEOUT };
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for addr in addrs {
            match probe.run(&addr) {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(failed(last))
    }

    /// Looks up a name's addresses; a path is taken as it is.
    pub(crate) fn resolve(&self, resolver: &Resolver) -> Result<UpstreamTarget, ResolveError> {
        let failed = |source| ResolveError { upstream: self.unweighted(), source };
        match &self.addr {
            UpstreamAddr::Unix(path) => {
                UnixAddr::from_pathname(path).map(UpstreamTarget::Unix).map_err(failed)
            }
            UpstreamAddr::Tcp { host, port } => {
                let addrs = resolver.resolve(host, *port).map_err(failed)?;
                Ok(UpstreamTarget::Tcp(UpstreamAddresses::new(&addrs)))
            }
        }
    }

    /// The name whose addresses may change, and the port.
    pub(crate) fn name(&self) -> Option<(&str, u16)> {
        match &self.addr {
            UpstreamAddr::Tcp { host, port } if host.parse::<IpAddr>().is_err() => Some((host, *port)),
            _ => None,
        }
    }
}

impl UpstreamScheme {
    const ALL: [Self; 4] = [Self::Tls, Self::H2c, Self::H2, Self::Plain];

    /// Whether HTTP/2 is spoken.
    pub fn is_http2(self) -> bool {
        matches!(self, Self::H2c | Self::H2)
    }

    /// Begins the name of such an upstream.
    fn prefix(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Tls => "tls://",
            Self::H2c => "h2c://",
            Self::H2 => "h2://",
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.scheme.prefix(), self.addr)?;
        if let Some(name) = &self.tls_name {
            write!(f, ",{NAME}{name}")?;
        }
        if self.weight == 1 { Ok(()) } else { write!(f, ",{WEIGHT}{}", self.weight) }
    }
}

impl fmt::Display for UpstreamAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

impl FromStr for Upstream {
    type Err = ParseUpstreamError;

    fn from_str(text: &str) -> Result<Self, ParseUpstreamError> {
        let with_prefix =
            |scheme: UpstreamScheme| text.strip_prefix(scheme.prefix()).map(|rest| (scheme, rest));
        let (scheme, rest) = UpstreamScheme::ALL.into_iter().find_map(with_prefix).unwrap_or_default();
        let problem = |problem| ParseUpstreamError { text: text.to_owned(), problem };
        parse(scheme, rest).map_err(problem)
    }
}

/// The upstream of a scheme, or what is wrong with it.
fn parse(scheme: UpstreamScheme, mut rest: &str) -> Result<Upstream, &'static str> {
    let (mut weight, mut tls_name) = (None, None);
    while let Some((before, word)) = rest.rsplit_once(',').filter(|(_, word)| is_upstream_word(word)) {
        let is_twice = if let Some(number) = word.strip_prefix(WEIGHT) {
            let number = number.parse().ok().filter(|number| (1..=WEIGHT_MAX).contains(number));
            weight.replace(number.ok_or("the weight is not a number from 1 to 256")?).is_some()
        } else {
            let name = word.strip_prefix(NAME).and_then(|name| name.parse::<UpstreamName>().ok());
            tls_name.replace(name.ok_or("the name is none that a TLS server can have")?).is_some()
        };
        if is_twice {
            return Err("the weight or the name is given twice");
        }
        rest = before;
    }
    let upstream =
        Upstream { scheme, addr: UpstreamAddr::parse(rest)?, weight: weight.unwrap_or(1), tls_name };
    match (upstream.is_tls(), &upstream.tls_name) {
        (false, Some(_)) => Err("a name goes with TLS, which tls:// or h2:// begins"),
        (true, _) if upstream.tls_peer().is_none() => Err("the host is no name that a TLS server can have"),
        _ => Ok(upstream),
    }
}

/// Whether a word behind a comma belongs to the upstream before it.
pub(super) fn is_upstream_word(word: &str) -> bool {
    word.starts_with(WEIGHT) || word.starts_with(NAME)
}

impl UpstreamAddr {
    /// The address, or what is wrong with it.
    fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(path) = text.strip_prefix("unix:") {
            if path.is_empty() {
                return Err("the path is missing");
            }
            UnixAddr::from_pathname(path).map_err(|_| "the path is too long for a socket, or malformed")?;
            return Ok(Self::Unix(path.into()));
        }
        if text.contains("://") {
            return Err(
                "no scheme is known but tls://, h2c:// and h2://, and HTTP/1.1 is host:port without one",
            );
        }
        let (host, port) = text.rsplit_once(':').ok_or("the port is missing")?;
        let port = port.parse().ok().filter(|&port| port != 0);
        let port = port.ok_or("the port is not a number from 1 to 65535")?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match bare {
            Some(v6) if !matches!(v6.parse(), Ok(IpAddr::V6(_))) => {
                return Err("what stands in brackets is not an IPv6 address");
            }
            None if host.contains([':', '[', ']', '/']) => {
                return Err("the host is malformed, or an IPv6 address without brackets");
            }
            _ if host.is_empty() => return Err("the host is missing"),
            _ => {}
        }
        Ok(Self::Tcp { host: bare.unwrap_or(host).to_owned(), port })
    }
}

#[cfg(test)]
mod tests;
