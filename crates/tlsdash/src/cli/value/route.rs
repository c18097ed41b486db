//! Routes, by flags and by the configuration file. The mode decides what a route selects by.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use proxy_core::{DeclaredOptions as _, Limits, NameRoute, ParseNameRouteError, Upstream, UpstreamScheme};
use proxy_http::{HttpLimits, ParseRouteError, Route, RouteTimeouts};
use records::setting::Value;
use records::text::quantity;
use serde::Deserialize;

use super::options::{OptionValueError, read};
use super::{ParsedValue, one_or_many, values};
use crate::cli::ProxyOptions;
use crate::cli::configuration::{PASS, ROUTE};
use crate::error::usage;

/// A route, with its line in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RouteEntry")]
pub(crate) struct RouteOption {
    kind: RouteKind,
    pub(crate) line: Option<usize>,
}

#[derive(Clone, Debug)]
enum RouteKind {
    /// Of TCP mode: it has no path.
    Name(NameRoute),
    /// Of HTTP mode.
    Request(Route),
}

/// Why a text is not a route of either mode.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RouteOptionError {
    #[error(transparent)]
    Name(#[from] ParseNameRouteError),
    #[error(transparent)]
    Request(#[from] ParseRouteError),
}

impl From<RouteKind> for RouteOption {
    fn from(kind: RouteKind) -> Self {
        Self { kind, line: None }
    }
}

impl FromStr for RouteOption {
    type Err = RouteOptionError;

    fn from_str(text: &str) -> Result<Self, RouteOptionError> {
        let from = text.split('=').next().unwrap_or_default();
        let kind = if from.contains('/') {
            RouteKind::Request(text.parse()?)
        } else {
            RouteKind::Name(text.parse()?)
        };
        Ok(kind.into())
    }
}

/// A `[[route]]` of the configuration file.
#[derive(Deserialize)]
struct RouteEntry {
    #[serde(default)]
    host: String,
    #[serde(default)]
    path: String,
    #[serde(default, deserialize_with = "one_or_many")]
    upstreams: Vec<ParsedValue<Upstream>>,
    #[serde(flatten)]
    timeouts: toml::Table,
}

/// Why a `[[route]]` is none.
#[derive(Debug, thiserror::Error)]
enum RouteEntryError {
    #[error("unknown field `{word}`, expected one of `host`, `path`, `upstreams`, `{}`", RouteTimeouts::NAMES.join("`, `"))]
    Unknown { word: String },
    #[error("{word}: {value}: {error}")]
    Timeout { word: String, value: toml::Value, error: OptionValueError },
    #[error("{word}: expected a text: write {meant:?}")]
    Number { word: String, meant: String },
    #[error(transparent)]
    Route(#[from] RouteOptionError),
}

impl TryFrom<RouteEntry> for RouteOption {
    type Error = RouteEntryError;

    fn try_from(entry: RouteEntry) -> Result<Self, RouteEntryError> {
        let mut timeouts = RouteTimeouts::default();
        for (word, value) in entry.timeouts {
            // A number without its unit is refused with a remedy.
            let number = value.as_integer().map(|number| quantity::shown(number as f64, "s"));
            let read = read_timeout(&word, number.as_deref().or(value.as_str()).unwrap_or_default());
            let (Some(timeout), Some(read)) = (timeouts.of(&word), read) else {
                return Err(RouteEntryError::Unknown { word });
            };
            let read = read.map_err(|error| RouteEntryError::Timeout { word: word.clone(), value, error })?;
            if let Some(meant) = number {
                return Err(RouteEntryError::Number { word, meant });
            }
            *timeout = Some(read);
        }
        let upstreams = values(&entry.upstreams);
        // Only a route of HTTP mode has timeouts.
        let kind = if entry.path.is_empty() && timeouts == RouteTimeouts::default() {
            RouteKind::Name(NameRoute::new(&entry.host, upstreams).map_err(RouteOptionError::from)?)
        } else {
            let route = Route::new(&entry.host, &entry.path, upstreams).map_err(RouteOptionError::from)?;
            RouteKind::Request(Route { timeouts, ..route })
        };
        Ok(kind.into())
    }
}

/// Parses a time as the setting of this name does; `None` if there is no such setting.
fn read_timeout(name: &str, text: &str) -> Option<Result<Duration, OptionValueError>> {
    let of_proxy = || Some(read(Limits::option(name)?, text));
    let of_http = || Some(read(HttpLimits::option(name)?, text));
    match of_proxy().or_else(of_http)? {
        Ok(Value::Number(seconds)) => Some(Ok(Duration::from_secs_f64(seconds))),
        Ok(Value::Text(_) | Value::Flag(_)) => None,
        Err(error) => Some(Err(error)),
    }
}

impl RouteOption {
    pub(crate) fn upstreams(&self) -> &[Upstream] {
        match &self.kind {
            RouteKind::Name(route) => route.upstreams(),
            RouteKind::Request(route) => &route.upstreams,
        }
    }

    /// Host and path.
    fn name(&self) -> String {
        match &self.kind {
            RouteKind::Name(route) => route.host().to_string(),
            RouteKind::Request(route) => route.name(),
        }
    }

    /// The route number `n` of this flag in words, from 0.
    fn place(&self, flag: &str, n: usize) -> String {
        match self.line {
            Some(line) => format!("the {flag} in line {line}"),
            None => format!("--{flag} {}", n + 1),
        }
    }

    fn name_route(&self, n: usize) -> anyhow::Result<NameRoute> {
        match &self.kind {
            RouteKind::Name(route) => Ok(route.clone()),
            RouteKind::Request(route) => Err(usage(format!(
                "{}: the path {} goes with --mode http only; in TCP mode the server name alone selects a route",
                self.place(ROUTE, n),
                route.prefix
            ))),
        }
    }

    fn request_route(&self, n: usize) -> anyhow::Result<Route> {
        match &self.kind {
            RouteKind::Request(route) => Ok(route.clone()),
            RouteKind::Name(route) => Route::new(&route.host().to_string(), "", route.upstreams().to_vec())
                .map_err(|error| usage(format!("{}: {error}", self.place(ROUTE, n)))),
        }
    }

    /// The route as a table of a configuration file.
    fn to_toml(&self, word: &str) -> String {
        let upstreams: Vec<_> = self.upstreams().iter().map(|one| format!("{:?}", one.to_string())).collect();
        let (host, request) = match &self.kind {
            RouteKind::Name(route) => (route.host(), None),
            RouteKind::Request(route) => (&route.host, Some(route)),
        };
        let mut text = format!("\n[[{word}]]\nhost = {:?}\n", host.to_string());
        if let Some(Route { prefix, .. }) = request {
            let _ = writeln!(text, "path = {prefix:?}");
        }
        let _ = writeln!(text, "upstreams = [{}]", upstreams.join(", "));
        for (name, timeout) in request.into_iter().flat_map(|route| route.timeouts.given()) {
            let _ = writeln!(text, "{name} = {:?}", quantity::shown(timeout.as_secs_f64(), "s"));
        }
        text
    }
}

impl RouteOption {
    fn passed_route(&self, n: usize) -> anyhow::Result<NameRoute> {
        let route = match &self.kind {
            RouteKind::Name(route) => route.clone(),
            RouteKind::Request(route) => {
                let (place, path) = (self.place(PASS, n), &route.prefix);
                return Err(usage(format!(
                    "{place}: the path {path}: the server name alone selects what is passed"
                )));
            }
        };
        match route.upstreams().iter().find(|upstream| upstream.scheme != UpstreamScheme::Plain) {
            Some(upstream) => Err(usage(format!(
                "{}: {upstream}: the client's TLS passes as it is; name the upstream without a scheme",
                self.place(PASS, n)
            ))),
            None => Ok(route.passed()),
        }
    }
}

impl ProxyOptions {
    /// The routes of TCP mode, with those of passed TLS.
    ///
    /// # Errors
    /// When a route has a path, or two are the same.
    pub(crate) fn name_routes(&self) -> anyhow::Result<Vec<NameRoute>> {
        let terminated = numbered(&self.route).map(|(n, route)| route.name_route(n));
        let terminated = terminated.collect::<Result<Vec<_>, _>>()?;
        let names = numbered(&self.route).map(|(n, route)| (route.place(ROUTE, n), route.name()));
        let passed = self.passed_routes(names)?;
        Ok([terminated, passed].concat())
    }

    /// The routes of passed TLS. The `terminated` hosts stand behind their places.
    fn passed_routes(
        &self,
        terminated: impl Iterator<Item = (String, String)>,
    ) -> anyhow::Result<Vec<NameRoute>> {
        let routes = numbered(&self.pass).map(|(n, route)| route.passed_route(n));
        let routes = routes.collect::<Result<_, _>>()?;
        let passed = numbered(&self.pass).map(|(n, route)| (route.place(PASS, n), route.name()));
        check_names(terminated.chain(passed))?;
        Ok(routes)
    }

    /// The routes of HTTP mode, and those of passed TLS.
    ///
    /// # Errors
    /// When a route has no path, or two are the same, or a host of one is passed too.
    pub(crate) fn request_routes(&self) -> anyhow::Result<(Vec<Route>, Vec<NameRoute>)> {
        let routes = numbered(&self.route).map(|(n, route)| route.request_route(n));
        let routes: Vec<Route> = routes.collect::<Result<_, _>>()?;
        let names = numbered(&self.route).map(|(n, route)| (route.place(ROUTE, n), route.name()));
        let of_upstream = (!self.upstream.is_empty()).then(|| ("--upstream".to_owned(), "/".to_owned()));
        check_names(names.chain(of_upstream))?;
        let places = numbered(&self.route).map(|(n, route)| route.place(ROUTE, n));
        let hosts: BTreeMap<String, String> =
            routes.iter().map(|route| route.host.to_string()).zip(places).collect();
        let passed = self.passed_routes(hosts.into_iter().map(|(host, place)| (place, host)))?;
        Ok((routes, passed))
    }

    pub(crate) fn any_route(&self) -> Option<&RouteOption> {
        self.route.first().or_else(|| self.pass.first())
    }

    /// The routes as tables of a configuration file.
    pub(crate) fn routes_to_toml(&self) -> String {
        let terminated = self.route.iter().map(|route| route.to_toml(ROUTE));
        terminated.chain(self.pass.iter().map(|route| route.to_toml(PASS))).collect()
    }
}

fn numbered(routes: &[RouteOption]) -> impl Iterator<Item = (usize, &RouteOption)> {
    routes.iter().enumerate()
}

/// Checks the names of routes, each behind its place.
///
/// # Errors
/// When two are the same; names both places.
fn check_names(routes: impl Iterator<Item = (String, String)>) -> anyhow::Result<()> {
    let mut places = HashMap::new();
    for (place, name) in routes {
        if let Some(first) = places.get(&name) {
            return Err(usage(format!("{first} and {place} both serve {name}")));
        }
        places.insert(name, place);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
