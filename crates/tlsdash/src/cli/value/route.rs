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
use crate::cli::configuration::{PASS, ROUTE};
use crate::cli::{ProxyOptions, usage};

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
mod tests {
    use super::*;
    use crate::cli::mode::tests::{options, refused};

    #[test]
    fn a_route_of_tcp_mode_is_a_host_and_reads_back() {
        let text =
            "upstream = \"h:9\"\n[[route]]\nhost = \"*.Example\"\nupstreams = [\"unix:/a\", \"h:1\"]\n";
        let routes = |options: &ProxyOptions| -> Vec<_> {
            options.name_routes().unwrap().iter().map(ToString::to_string).collect()
        };
        assert_eq!(routes(&options(text)), ["*.example=unix:/a,h:1"]);
        let printed = options(text).to_toml().unwrap();
        assert_eq!(options(&printed).to_toml().unwrap(), printed);
        assert_eq!(routes(&options(&printed)), ["*.example=unix:/a,h:1"]);
    }

    #[test]
    fn passed_names_have_tables_of_their_own_and_none_is_terminated_too() {
        let pass = "[[pass]]\nhost = \"x\"\nupstreams = \"h:1\"\n";
        let given = options(pass);
        let routes = given.name_routes().unwrap();
        assert!(routes[0].is_passed() && given.any_route().is_some());
        let printed = given.to_toml().unwrap();
        assert!(printed.contains("\n[[pass]]\nhost = \"x\"\n"), "{printed}");
        assert_eq!(options(&printed).to_toml().unwrap(), printed);
        let both = format!("{pass}[[route]]\nhost = \"x\"\nupstreams = \"h:1\"\n");
        assert_eq!(refused(&both), "the route in line 4 and the pass in line 1 both serve x");
        let twice = pass.replace("h:1", "tls://h:1");
        assert!(refused(&twice).contains("name the upstream without a scheme"));
        let both = "mode = \"http\"\n[[pass]]\nhost = \"x\"\nupstreams = \"h:1\"\n\
                    [[route]]\nhost = \"x\"\npath = \"/a\"\nupstreams = \"h:1\"\n";
        assert_eq!(refused(both), "the route in line 5 and the pass in line 2 both serve x");
        let path = pass.replace("\"x\"", "\"x\"\npath = \"/a\"");
        assert!(refused(&path).starts_with("the pass in line 1: the path /a: the server name alone"));
    }

    #[test]
    fn a_route_of_the_other_mode_is_refused_with_its_place() {
        let file =
            |mode: &str, table: &str| format!("mode = \"{mode}\"\nupstream = \"h:9\"\n[[route]]\n{table}\n");
        for (mode, table, part) in [
            (
                "tcp",
                "path = \"/a\"\nupstreams = \"h:1\"",
                "the route in line 3: the path /a goes with --mode http only",
            ),
            ("tcp", "host = \"x\"\npath = \"/\"\nupstreams = \"h:1\"", "the path / goes with"),
            (
                "http",
                "host = \"x\"\nupstreams = \"h:1\"",
                "the route in line 3: \"x\" is not a route: the path is missing",
            ),
        ] {
            assert!(refused(&file(mode, table)).contains(part), "{}", refused(&file(mode, table)));
        }
        let mut flags = options("upstream = \"h:9\"");
        flags.route = ["x=h:1", "y/a=h:1"].map(|text| text.parse().unwrap()).to_vec();
        assert!(flags.name_routes().unwrap_err().to_string().starts_with("--route 2: the path /a"));
        flags.route = ["x=h:1", "X.=h:2"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(flags.name_routes().unwrap_err().to_string(), "--route 1 and --route 2 both serve x");
        for (text, part) in [
            ("=h:1", "the host is missing: --upstream serves all other names"),
            ("x", "the upstream is missing"),
            ("x:443=h:1", "the host has a port"),
            (
                "x y=h:1",
                "\"x y=h:1\" is not a route: the host is malformed; expected HOST=UPSTREAM[,UPSTREAM...]",
            ),
            ("x=h:1,h:1", "the upstream h:1 is given twice"),
        ] {
            let error = text.parse::<RouteOption>().unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn routes_of_a_file_are_tables_and_read_back() {
        let text = "mode = \"http\"\nupstream = \"h:9\"\n[[route]]\nhost = \"*.example\"\npath = \"/a/\"\n\
                    upstreams = [\"unix:/a\", \"h:1\"]\n[[route]]\npath = \"/b\"\nupstreams = \"h:2\"\n";
        let config = options(text).http_config().unwrap().unwrap();
        let routes: Vec<_> = config.routes.iter().map(ToString::to_string).collect();
        assert_eq!(routes, ["*.example/a=unix:/a,h:1", "/b=h:2"]);
        let printed = options(text).to_toml().unwrap();
        assert_eq!(options(&printed).to_toml().unwrap(), printed);
        assert_eq!(options(&printed).http_config().unwrap().unwrap().routes, config.routes);
        assert!(
            printed.contains("\n# proxy-protocol = ") && printed.contains("\nheader-timeout = "),
            "{printed}"
        );
    }

    #[test]
    fn a_route_of_a_file_has_timeouts_of_its_own() {
        let timeouts = RouteTimeouts::NAMES.map(|name| format!("{name} = \"90s\"\n")).concat();
        let text = format!("mode = \"http\"\n[[route]]\npath = \"/a\"\nupstreams = \"h:1\"\n{timeouts}");
        let config = options(&text).http_config().unwrap().unwrap();
        let given: Vec<_> = config.routes[0].timeouts.given().collect();
        assert_eq!(given, RouteTimeouts::NAMES.map(|name| (name, Duration::from_secs(90))));
        let printed = options(&text).to_toml().unwrap();
        assert!(printed.contains("\nqueue-timeout = \"90s\"\n"), "{printed}");
        assert_eq!(options(&printed).http_config().unwrap().unwrap().routes, config.routes);
    }

    #[test]
    fn two_equal_routes_are_named_with_their_places() {
        let a = "[[route]]\npath = \"/a\"\nupstreams = \"h:1\"\n";
        let file = format!("mode = \"http\"\n{a}\n{a}");
        assert_eq!(refused(&file), "the route in line 2 and the route in line 6 both serve /a");
        let mut flags = options("mode = \"http\"\nupstream = \"h:9\"");
        flags.route = ["/=h:1", "x/=h:2"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(flags.http_config().unwrap_err().to_string(), "--route 1 and --upstream both serve /");
        flags.route = ["/b=h:1", "x/=h:2", "/b/=h:3"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(flags.http_config().unwrap_err().to_string(), "--route 1 and --route 3 both serve /b");
    }

    #[test]
    fn a_malformed_route_of_a_file_is_named_with_its_line() {
        for (table, part) in [
            ("path = \"a\"\nupstreams = \"h:1\"", "line 5: route: \"a\" is not a route: the path is missing"),
            (
                "path = \"/a\"\nupstreams = []",
                "line 6: route: \"/a\" is not a route: the upstream is missing",
            ),
            ("path = \"/a\"\nupstreams = \"h\"", "line 7: route: h: "),
            ("path = \"/a\"\nupstream = \"h:1\"", "line 7: route: unknown field `upstream`"),
            (
                "path = \"/a\"\nupstreams = \"h:1\"\nheader-timeout = \"1s\"",
                "line 8: route: unknown field `header-timeout`, expected one of `host`, `path`, `upstreams`, \
                 `connect-timeout`, `queue-timeout`, `response-timeout`, `body-timeout`",
            ),
            (
                "path = \"/a\"\nupstreams = \"h:1\"\nqueue-timeout = \"2days\"",
                "line 8: route: queue-timeout: \"2days\": expected a time from 1ms to 24h, such as 10s",
            ),
            (
                "path = \"/a\"\nupstreams = \"h:1\"\nbody-timeout = 5",
                "line 8: route: body-timeout: expected a text: write \"5s\"",
            ),
        ] {
            let text =
                format!("mode = \"http\"\n[[route]]\npath = \"/x\"\nupstreams = \"h:1\"\n[[route]]\n{table}");
            let error = ProxyOptions::parse(&text).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
