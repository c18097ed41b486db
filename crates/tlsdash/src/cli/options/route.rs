//! Routes, by flags and by the configuration file. The mode decides what a route selects by.

use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use proxy_core::{DeclaredOptions as _, Limits, NameRoute, ParseNameRouteError, Upstream, UpstreamScheme};
use proxy_http::{HttpLimits, ParseRouteError, Route, RouteTimeouts};
use records::setting::Value;
use records::text::quantity;
use serde::Deserialize;

use crate::error::usage;
use crate::value::options::{OptionValueError, read};
use crate::value::{ParsedValue, one_or_many, values};

/// The words of the routes.
pub(crate) const UPSTREAM: &str = "upstream";
pub(crate) const ROUTE: &str = "route";
pub(crate) const PASS: &str = "pass";

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
    #[error(transparent)]
    Route(#[from] RouteOptionError),
}

impl TryFrom<RouteEntry> for RouteOption {
    type Error = RouteEntryError;

    fn try_from(entry: RouteEntry) -> Result<Self, RouteEntryError> {
        let mut timeouts = RouteTimeouts::default();
        for (word, value) in entry.timeouts {
            let read = read_timeout(&word, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            let (Some(timeout), Some(read)) = (timeouts.of(&word), read) else {
                return Err(RouteEntryError::Unknown { word });
            };
            let read = read.map_err(|error| RouteEntryError::Timeout { word: word.clone(), value, error })?;
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
    pub(crate) fn name(&self) -> String {
        match &self.kind {
            RouteKind::Name(route) => route.host().to_string(),
            RouteKind::Request(route) => route.name(),
        }
    }

    /// The route number `n` of this flag in words, from 0.
    pub(crate) fn place(&self, flag: &str, n: usize) -> String {
        match self.line {
            Some(line) => format!("the {flag} in line {line}"),
            None => format!("--{flag} {}", n + 1),
        }
    }

    pub(crate) fn name_route(&self, n: usize) -> anyhow::Result<NameRoute> {
        match &self.kind {
            RouteKind::Name(route) => Ok(route.clone()),
            RouteKind::Request(route) => Err(usage(format!(
                "{}: the path {} goes with --mode http only; in TCP mode the server name alone selects a route",
                self.place(ROUTE, n),
                route.prefix
            ))),
        }
    }

    pub(crate) fn request_route(&self, n: usize) -> anyhow::Result<Route> {
        match &self.kind {
            RouteKind::Request(route) => Ok(route.clone()),
            RouteKind::Name(route) => Route::new(&route.host().to_string(), "", route.upstreams().to_vec())
                .map_err(|error| usage(format!("{}: {error}", self.place(ROUTE, n)))),
        }
    }

    /// The route as a table of a configuration file.
    pub(crate) fn to_toml(&self, word: &str) -> String {
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

    pub(crate) fn passed_route(&self, n: usize) -> anyhow::Result<NameRoute> {
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
