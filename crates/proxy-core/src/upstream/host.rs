//! The hosts that routes name, and the lookup of a client's host among them.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

/// The hosts of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    Any,
    /// One host, in lower case.
    Exact(String),
    /// All hosts below a domain, which `*.` precedes.
    Below(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseHostError {
    #[error("the host is malformed")]
    Malformed,
    #[error("the host has a port: leave it out, a route serves its host at every port")]
    Port,
}

impl FromStr for HostPattern {
    type Err = ParseHostError;

    fn from_str(text: &str) -> Result<Self, ParseHostError> {
        if without_port(text) != text {
            return Err(ParseHostError::Port);
        }
        let text = without_dot(text);
        let (domain, is_below) = text.strip_prefix("*.").map_or((text, false), |domain| (domain, true));
        let is_host_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
        match (domain.to_ascii_lowercase(), is_below) {
            (domain, false) if domain.is_empty() => Ok(Self::Any),
            (domain, _) if domain.is_empty() || !domain.bytes().all(is_host_byte) => {
                Err(ParseHostError::Malformed)
            }
            (domain, true) => Ok(Self::Below(domain)),
            (domain, false) => Ok(Self::Exact(domain)),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => Ok(()),
            Self::Exact(host) => f.write_str(host),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}

/// A host without the dot at its end, which means the same name.
fn without_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// A host without the port at its end.
pub fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// A value for each pattern.
#[derive(Clone, Debug, Default)]
pub struct HostTable<T> {
    exact: HashMap<String, T>,
    /// The longest domain first.
    below: Vec<(String, T)>,
    any: T,
}

impl<T: Default> HostTable<T> {
    /// The value of a pattern; a new pattern has the default.
    pub fn entry(&mut self, host: &HostPattern) -> &mut T {
        match host {
            HostPattern::Any => &mut self.any,
            HostPattern::Exact(host) => self.exact.entry(host.clone()).or_default(),
            HostPattern::Below(domain) => {
                let at = self.below.iter().position(|(other, _)| other == domain).unwrap_or_else(|| {
                    let at = self.below.partition_point(|(other, _)| other.len() >= domain.len());
                    self.below.insert(at, (domain.clone(), T::default()));
                    at
                });
                &mut self.below[at].1
            }
        }
    }
}

impl<T> HostTable<T> {
    /// The first result of `find` over the values whose pattern has the host: the exact one, then those of domains, the
    /// longest first, then that of any host.
    pub fn find_map<R>(&self, host: &str, find: impl Fn(&T) -> Option<R>) -> Option<R> {
        if self.exact.is_empty() && self.below.is_empty() {
            return find(&self.any);
        }
        let host = without_dot(host).to_ascii_lowercase();
        let is_below = |domain: &str| {
            host.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        };
        let below =
            || self.below.iter().filter(|(domain, _)| is_below(domain)).find_map(|(_, value)| find(value));
        self.exact.get(&host).and_then(&find).or_else(below).or_else(|| find(&self.any))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_host_comes_first_then_the_longest_domain_then_any() {
        let mut table = HostTable::<Option<&str>>::default();
        for pattern in
            ["*.example", "*.shop.example", "*.long.elsewhere", "", "shop.example", "a.shop.example"]
        {
            *table.entry(&pattern.parse().unwrap()) = Some(pattern);
        }
        for (host, expected) in [
            ("example", ""),
            (".example", ""),
            ("xexample", ""),
            ("a.example", "*.example"),
            ("a.b.example", "*.example"),
            ("shop.example", "shop.example"),
            ("SHOP.Example.", "shop.example"),
            ("b.shop.example", "*.shop.example"),
            ("a.shop.example", "a.shop.example"),
            ("", ""),
        ] {
            assert_eq!(table.find_map(host, |value| *value), Some(expected), "{host}");
        }
        assert_eq!(
            table.find_map("a.shop.example", |value| value.filter(|one| !one.starts_with('a'))),
            Some("*.shop.example")
        );
    }

    #[test]
    fn a_pattern_reads_back_and_a_malformed_one_is_refused() {
        for (text, printed) in
            [("Shop.example.", "shop.example"), ("*.example", "*.example"), ("[::1]", "[::1]"), ("", "")]
        {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), printed);
        }
        for text in ["a b", "*.", "a.*", "*", "ü"] {
            assert_eq!(text.parse::<HostPattern>(), Err(ParseHostError::Malformed), "{text}");
        }
        assert_eq!("a:8443".parse::<HostPattern>(), Err(ParseHostError::Port));
    }
}
