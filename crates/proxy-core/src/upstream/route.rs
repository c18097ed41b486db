//! Routes of TCP mode: the upstreams of a connection, by the server name that its client asks for.

use std::fmt;
use std::str::FromStr;

use super::host::{HostPattern, HostTable, ParseHostError};
use super::target::{ParseUpstreamError, Upstream, is_upstream_word};

/// Where connections go whose clients ask for a server name, such as `api.example=unix:/run/api.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRoute {
    /// Not [`HostPattern::Any`], which is the default.
    host: HostPattern,
    upstreams: Vec<Upstream>,
    /// Whether the upstreams terminate TLS.
    is_passed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a route: {problem}; expected HOST=UPSTREAM[,UPSTREAM...], such as api.example=unix:/run/api.sock"
)]
pub struct ParseNameRouteError {
    text: String,
    problem: NameRouteProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NameRouteProblem {
    #[error("the host is missing: --upstream serves all other names")]
    NoHost,
    #[error(transparent)]
    Host(#[from] ParseHostError),
    #[error(transparent)]
    Upstreams(#[from] UpstreamsError),
}

/// Why the upstreams of a route are malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamsError {
    #[error("the upstream is missing")]
    Missing,
    #[error(transparent)]
    Parse(#[from] ParseUpstreamError),
    #[error("the upstream {0} is given twice")]
    Twice(Upstream),
}

/// Splits `FROM=UPSTREAM[,UPSTREAM...]`, the text of a route of either mode.
///
/// # Errors
/// If the upstreams are missing or malformed.
pub fn split_route(text: &str) -> Result<(&str, Vec<Upstream>), UpstreamsError> {
    let (from, upstreams) = text.split_once('=').ok_or(UpstreamsError::Missing)?;
    // A weight or a name belongs to the upstream before it.
    let mut texts: Vec<String> = Vec::new();
    for text in upstreams.split(',').map(str::trim) {
        match texts.last_mut().filter(|_| is_upstream_word(text)) {
            Some(last) => *last = format!("{last},{text}"),
            None => texts.push(text.to_owned()),
        }
    }
    let upstreams = texts.iter().map(|text| Ok(text.parse()?));
    Ok((from, upstreams.collect::<Result<_, UpstreamsError>>()?))
}

/// Checks the upstreams of a route of either mode.
///
/// # Errors
/// If there are none, or two are equal.
pub fn check_upstreams(upstreams: &[Upstream]) -> Result<(), UpstreamsError> {
    if upstreams.is_empty() {
        return Err(UpstreamsError::Missing);
    }
    repeated(upstreams).map_or(Ok(()), |twice| Err(UpstreamsError::Twice(twice)))
}

/// The first upstream that is there twice, whatever its weight.
pub(crate) fn repeated(upstreams: &[Upstream]) -> Option<Upstream> {
    let unweighted: Vec<_> = upstreams.iter().map(Upstream::unweighted).collect();
    let twice = unweighted.iter().enumerate().find(|(i, one)| unweighted[..*i].contains(one));
    twice.map(|(_, one)| one.clone())
}

impl NameRoute {
    /// # Errors
    /// As for its text.
    pub fn new(host: &str, upstreams: Vec<Upstream>) -> Result<Self, ParseNameRouteError> {
        name_route(host, upstreams).map_err(|problem| ParseNameRouteError { text: host.to_owned(), problem })
    }

    pub fn host(&self) -> &HostPattern {
        &self.host
    }

    /// The same for upstreams that terminate TLS themselves.
    #[must_use]
    pub fn passed(self) -> Self {
        Self { is_passed: true, ..self }
    }

    pub fn is_passed(&self) -> bool {
        self.is_passed
    }

    /// At least one.
    pub fn upstreams(&self) -> &[Upstream] {
        &self.upstreams
    }

    /// Gives it other upstreams, at least one.
    pub fn set_upstreams(&mut self, upstreams: Vec<Upstream>) {
        self.upstreams = upstreams;
    }
}

fn name_route(host: &str, upstreams: Vec<Upstream>) -> Result<NameRoute, NameRouteProblem> {
    check_upstreams(&upstreams)?;
    match host.parse()? {
        HostPattern::Any => Err(NameRouteProblem::NoHost),
        host => Ok(NameRoute { host, upstreams, is_passed: false }),
    }
}

impl FromStr for NameRoute {
    type Err = ParseNameRouteError;

    fn from_str(text: &str) -> Result<Self, ParseNameRouteError> {
        let parsed = split_route(text).map_err(NameRouteProblem::from);
        parsed
            .and_then(|(host, upstreams)| name_route(host, upstreams))
            .map_err(|problem| ParseNameRouteError { text: text.to_owned(), problem })
    }
}

impl fmt::Display for NameRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upstreams: Vec<_> = self.upstreams.iter().map(ToString::to_string).collect();
        write!(f, "{}={}", self.host, upstreams.join(","))
    }
}

/// Two routes have the same host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("two routes serve {0}")]
pub struct DuplicateHost(HostPattern);

/// The routes of a proxy by server name.
#[derive(Debug, Default)]
pub(crate) struct NameRoutes {
    /// For any host: the upstreams that no route names.
    table: HostTable<Option<NameDestination>>,
    /// The destinations of names that are passed.
    passed: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct NameDestination {
    /// The index of the destination.
    destination: usize,
    is_passed: bool,
}

impl NameRoutes {
    /// The destinations are that of all other names, if there is one, and from `first` on those of `routes`.
    pub(crate) fn new(has_default: bool, first: usize, routes: &[NameRoute]) -> Result<Self, DuplicateHost> {
        let mut table = HostTable::default();
        *table.entry(&HostPattern::Any) =
            has_default.then_some(NameDestination { destination: 0, is_passed: false });
        for (destination, NameRoute { host, is_passed, .. }) in (first..).zip(routes) {
            let destination = NameDestination { destination, is_passed: *is_passed };
            if table.entry(host).replace(destination).is_some() {
                return Err(DuplicateHost(host.clone()));
            }
        }
        let passed = (first..).zip(routes).filter(|(_, route)| route.is_passed);
        Ok(Self { table, passed: passed.map(|(destination, _)| destination).collect() })
    }

    /// Whether no upstream serves other names than those of the routes.
    pub(crate) fn is_without_default(&self) -> bool {
        self.terminated("").is_none()
    }

    /// The destination of the plaintext of clients that ask for this name, which is empty without one. Not that of a name
    /// whose TLS is passed, nor another in its place.
    pub(crate) fn terminated(&self, name: &str) -> Option<usize> {
        let found = self.table.find_map(name, |destination| *destination)?;
        (!found.is_passed).then_some(found.destination)
    }

    /// The destination of the TLS of clients that ask for this name; `None` if it is terminated.
    pub(crate) fn passed(&self, name: &str) -> Option<usize> {
        let found = self.table.find_map(name, |destination| *destination)?;
        found.is_passed.then_some(found.destination)
    }

    /// Whether any name is passed.
    pub(crate) fn has_passed(&self) -> bool {
        !self.passed.is_empty()
    }

    /// The destinations of names that are passed.
    pub(crate) fn all_passed(&self) -> &[usize] {
        &self.passed
    }
}

/// The places of `some` among the upstreams of a proxy, as the bits of a word. Adds those that are missing.
pub fn upstream_bits(all: &mut Vec<Upstream>, some: &[Upstream]) -> u64 {
    some.iter().fold(0, |bits, upstream| {
        let place = all.iter().position(|other| other == upstream).unwrap_or_else(|| {
            all.push(upstream.clone());
            all.len() - 1
        });
        // Beyond the width of a word there are too many upstreams, which is refused.
        bits | 1_u64.wrapping_shl(place as u32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_belongs_to_the_upstream_before_it() {
        let route: NameRoute = "x=unix:/a,weight=3, h:1 ,h:2, weight=2".parse().unwrap();
        let weights: Vec<_> = route.upstreams().iter().map(|upstream| upstream.weight).collect();
        assert_eq!(weights, [3, 1, 2]);
        assert_eq!(route.to_string(), "x=unix:/a,weight=3,h:1,h:2,weight=2");
        let route: NameRoute = "x=tls://h:1,name=a.b,weight=2,tls://h:1,name=b.b".parse().unwrap();
        assert_eq!(route.upstreams().len(), 2, "two names at one address");
        for text in ["x=weight=3,h:1", "x=h:1,weight=0", "x=h:1,weight=3,h:1"] {
            assert!(text.parse::<NameRoute>().is_err(), "{text}");
        }
    }
}
