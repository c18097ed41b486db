//! The target of a load: a server's URL, and the requests to send.

mod destination;
mod file;
mod template;

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

pub use destination::{ConnectTo, ConnectToError, Destination};
pub use file::{LineError, ReadBodyError, TargetsError, parse_targets, read_body};
pub use template::{Expect, RequestBody, Template};

/// The scheme of a URL: the protocol that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP over TLS.
    Https,
    /// HTTP.
    Http,
    /// Bytes that the server sends back as they are, over TLS.
    Tls,
    /// Bytes that the server sends back as they are, over TCP.
    Tcp,
}

impl Scheme {
    const ALL: [Self; 4] = [Self::Https, Self::Http, Self::Tls, Self::Tcp];

    /// Its name in a URL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Tls => "tls",
            Self::Tcp => "tcp",
        }
    }

    pub fn is_tls(self) -> bool {
        matches!(self, Self::Https | Self::Tls)
    }

    /// True without a protocol: the server echoes the bytes.
    pub fn is_raw(self) -> bool {
        matches!(self, Self::Tls | Self::Tcp)
    }

    const fn default_port(self) -> Option<u16> {
        match self {
            Self::Https => Some(443),
            Self::Http => Some(80),
            Self::Tls | Self::Tcp => None,
        }
    }
}

/// A server, and the path to request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    scheme: Scheme,
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    host: String,
    port: u16,
    path: String,
}

impl Target {
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub fn is_tls(&self) -> bool {
        self.scheme.is_tls()
    }

    /// The host as a name or an address, an IPv6 address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, given or the scheme's own.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The path with its query, beginning with `/`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The value of the `Host` header: the host, in brackets for an IPv6 address, and the port unless it is the
    /// scheme's default (RFC 9110, section 7.2).
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if Some(self.port) == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.scheme.is_raw() { "" } else { &self.path };
        write!(f, "{}://{}{path}", self.scheme.name(), self.authority())
    }
}

/// The text is not a target. Holds the text, and the expected form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a URL to load: {reason}; expected https://HOST[:PORT][/PATH]")]
pub struct TargetError {
    text: String,
    reason: &'static str,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        parse(text).map_err(|reason| TargetError { text: records::text::clean::text(text), reason })
    }
}

fn parse(text: &str) -> Result<Target, &'static str> {
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err("it holds spaces, control characters or letters outside ASCII");
    }
    let (scheme, rest) = text.split_once("://").ok_or("it has no scheme, such as http:// or https://")?;
    let scheme = Scheme::ALL.into_iter().find(|known| scheme.eq_ignore_ascii_case(known.name()));
    let scheme = scheme.ok_or("its scheme is none of https, http, tls and tcp")?;
    // A fragment never goes to a server.
    let rest = rest.split('#').next().unwrap_or(rest);
    let (authority, path) = match rest.find(['/', '?']) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    if authority.contains('@') {
        return Err("a user name or password in it is not supported");
    }
    let (host, port) = split_port(authority)?;
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    if scheme.is_raw() && path != "/" {
        return Err("an echo has no path");
    }
    let port = port.or_else(|| scheme.default_port()).ok_or("an echo needs a port")?;
    Ok(Target { scheme, host, port, path })
}

fn split_port(authority: &str) -> Result<(String, Option<u16>), &'static str> {
    let (host, port) = split_host(authority)?;
    if host.is_empty() {
        return Err("it has no host");
    }
    Ok((host.to_ascii_lowercase(), port.map(parse_port).transpose()?))
}

/// A host, without the brackets of an IPv6 address, and what follows the colon behind it.
fn split_host(text: &str) -> Result<(&str, Option<&str>), &'static str> {
    let (host, rest) = if let Some(bracketed) = text.strip_prefix('[') {
        let (host, after) = bracketed.split_once(']').ok_or("a bracket is not closed")?;
        host.parse::<Ipv6Addr>().map_err(|_| "what stands in brackets is not an IPv6 address")?;
        match after.strip_prefix(':') {
            Some(rest) => (host, Some(rest)),
            None if after.is_empty() => (host, None),
            None => return Err("something other than a port follows the bracket"),
        }
    } else {
        match text.split_once(':') {
            Some((host, rest)) => (host, Some(rest)),
            None => (text, None),
        }
    };
    if !host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:".contains(&b)) {
        return Err("its host is neither a name nor an address");
    }
    Ok((host, rest))
}

fn parse_port(text: &str) -> Result<u16, &'static str> {
    // `u16::from_str` would take `+80` too.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(port) if port > 0 && digits => Ok(port),
        _ => Err("its port is not a number from 1 to 65535"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }

    #[test]
    fn a_url_is_split_into_its_parts() {
        let full = target("https://Example.org:8443/bytes/10?x=1#top");
        assert!(full.is_tls());
        assert_eq!((full.host(), full.port(), full.path()), ("example.org", 8443, "/bytes/10?x=1"));
        assert_eq!(full.authority(), "example.org:8443");
        let bare = target("http://127.0.0.1");
        assert_eq!((bare.is_tls(), bare.port(), bare.path()), (false, 80, "/"));
        assert_eq!(target("https://host?x").path(), "/?x");
    }

    #[test]
    fn an_ipv6_address_is_in_brackets() {
        let v6 = target("https://[::1]:8443/");
        assert_eq!((v6.host(), v6.port()), ("::1", 8443));
        assert_eq!(v6.authority(), "[::1]:8443");
        assert_eq!(target("https://[::1]").authority(), "[::1]");
    }

    #[test]
    fn a_target_reads_back_as_it_is_written() {
        for text in [
            "https://example.org/",
            "http://127.0.0.1:8080/a?b",
            "https://[::1]:444/",
            "tcp://localhost:7",
            "tls://[::1]:443",
        ] {
            assert_eq!(target(text).to_string(), text);
        }
    }

    #[test]
    fn a_bad_url_is_refused_with_what_was_expected() {
        for (text, reason) in [
            ("localhost:8443", "no scheme"),
            ("ftp://host/", "none of https, http, tls and tcp"),
            ("tcp://host", "needs a port"),
            ("tcp://host:7/path", "no path"),
            ("https:///path", "no host"),
            ("https://host:0/", "port"),
            ("https://host:99999/", "port"),
            ("https://host:+80/", "port"),
            ("https://host:/", "port"),
            ("https://[::1/", "bracket"),
            ("https://[nonsense]/", "IPv6"),
            ("https://a b/", "spaces"),
            ("https://host/\r\nX: y", "control"),
            ("https://me@host/", "user name"),
            ("https://h\"st/", "neither a name nor an address"),
        ] {
            let error = text.parse::<Target>().unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(error.contains("expected https://HOST[:PORT][/PATH]"), "{error}");
        }
    }
}
