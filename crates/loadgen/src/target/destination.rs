//! Where connections go if not to the host and port of the URL.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Target, parse_port, split_host};

/// An address to connect to. What is asked for and verified stays the URL's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    Tcp {
        /// A name, an IPv4 address, or an IPv6 address without its brackets.
        host: String,
        port: u16,
    },
    Unix(PathBuf),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Another address for a host and port, as curl's `--connect-to` writes it: `HOST:PORT:ADDR:PORT`. An empty part before
/// matches everything, an empty part behind stays as in the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    host: Option<String>,
    port: Option<u16>,
    to_host: Option<String>,
    to_port: Option<u16>,
}

impl ConnectTo {
    /// Where connections to a target go; `None` if it is another host or port.
    pub fn destination(&self, target: &Target) -> Option<Destination> {
        let is_host = self.host.as_ref().is_none_or(|host| host == target.host());
        let is_port = self.port.is_none_or(|port| port == target.port());
        (is_host && is_port).then(|| Destination::Tcp {
            host: self.to_host.clone().unwrap_or_else(|| target.host().to_owned()),
            port: self.to_port.unwrap_or_else(|| target.port()),
        })
    }
}

/// The text is not of the form; says what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; expected HOST:PORT:ADDR:PORT, such as shop.example:443:127.0.0.1:8443")]
pub struct ConnectToError(&'static str);

impl FromStr for ConnectTo {
    type Err = ConnectToError;

    fn from_str(text: &str) -> Result<Self, ConnectToError> {
        parse(text).map_err(ConnectToError)
    }
}

fn parse(text: &str) -> Result<ConnectTo, &'static str> {
    let missing = "a part is missing";
    let (host, rest) = host(text)?;
    let (port, rest) = rest.split_once(':').ok_or(missing)?;
    let (to_host, to_port) = self::host(rest)?;
    let port_of = |text: &str| (!text.is_empty()).then(|| parse_port(text)).transpose();
    Ok(ConnectTo { host, port: port_of(port)?, to_host, to_port: port_of(to_port)? })
}

/// A host, `None` if it is empty, and what follows its colon.
fn host(text: &str) -> Result<(Option<String>, &str), &'static str> {
    let (host, rest) = split_host(text)?;
    let rest = rest.ok_or("a part is missing")?;
    Ok(((!host.is_empty()).then(|| host.to_ascii_lowercase()), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(rule: &str, target: &str) -> Option<String> {
        let rule: ConnectTo = rule.parse().unwrap();
        rule.destination(&target.parse().unwrap()).map(|to| to.to_string())
    }

    #[test]
    fn a_rule_is_for_its_host_and_port_and_an_empty_part_for_all() {
        let to = |rule| destination(rule, "https://Shop.example/");
        assert_eq!(to("shop.example:443:127.0.0.1:8443").as_deref(), Some("127.0.0.1:8443"));
        assert_eq!(to("SHOP.example:443:[::1]:8443").as_deref(), Some("[::1]:8443"));
        assert_eq!(to("::app:").as_deref(), Some("app:443"));
        assert_eq!(to(":443::8443").as_deref(), Some("shop.example:8443"));
        assert_eq!(to("shop.example:8443:127.0.0.1:1"), None);
        assert_eq!(to("other.example:443:127.0.0.1:1"), None);
        assert_eq!(destination("[::1]:443:app:1", "https://[::1]/").as_deref(), Some("app:1"));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for (text, reason) in [
            ("", "missing"),
            ("shop.example", "missing"),
            ("shop.example:443", "missing"),
            ("shop.example:443:app", "missing"),
            ("shop.example:443:app:0", "port"),
            ("shop.example:443:app:80:90", "port"),
            ("shop.example:x:app:80", "port"),
            ("[::1:443:app:80", "bracket"),
            ("a b:443:app:80", "neither a name nor an address"),
        ] {
            let error = text.parse::<ConnectTo>().unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("HOST:PORT:ADDR:PORT"), "{text}: {error}");
        }
    }
}
