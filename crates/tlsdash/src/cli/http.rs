//! Options of HTTP mode, by flags and by the configuration file.

use std::fmt::Write as _;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use proxy_core::proxy_protocol::TrustedPeers;
use proxy_core::{DeclaredOptions as _, Limits, Upstream};
use proxy_http::{HttpConfig, HttpLimits, ParseRouteError, Route, RouteTimeouts};
use records::setting::Value;
use records::text::quantity;
use serde::{Deserialize, Serialize};

use super::mode::ProxyMode;
use super::value::options::{OptionValueError, read};
use super::value::{ParsedValue, one_or_many, values};
use super::{ProxyOptions, usage};

/// The default protocols of clients, without `--alpn`.
pub(crate) const ALPN: &str = "h2,http/1.1";

/// Something that is on or off, and has a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnOff {
    /// It is done.
    On,
    /// It is left out.
    Off,
}

/// The configuration of HTTP mode besides its limits.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct HttpOptions {
    /// Send requests of a host and path to these upstreams, such as /api=unix:/run/api.sock or
    /// shop.example/static=127.0.0.1:9000,127.0.0.1:9001; may be repeated: the longest path wins, and --upstream gets the
    /// rest
    #[arg(long, value_name = "[HOST]/PATH=UPSTREAM,...")]
    #[serde(skip_serializing)]
    pub(crate) route: Vec<RouteOption>,
    /// Peers whose X-Forwarded-For, -Proto and -Host are believed and continued, such as 10.0.0.0/8 [default: none]
    #[arg(long, value_name = "CIDR,...")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trust_forwarded: Option<ParsedValue<TrustedPeers>>,
    /// Tell upstreams TLS version, cipher suite, server name and verified client name by X-TLS-* fields
    #[arg(long)]
    pub(crate) tls_headers: bool,
    /// Whether records of requests name their path, without the query [default: on]
    #[arg(long, value_name = "SWITCH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_paths: Option<OnOff>,
}

/// A route, with its line in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RouteEntry")]
pub(crate) struct RouteOption {
    route: Route,
    pub(crate) line: Option<usize>,
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
    Route(#[from] ParseRouteError),
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
        let route = Route::new(&entry.host, &entry.path, values(&entry.upstreams))?;
        Ok(Self { route: Route { timeouts, ..route }, line: None })
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

impl FromStr for RouteOption {
    type Err = ParseRouteError;

    fn from_str(text: &str) -> Result<Self, ParseRouteError> {
        text.parse().map(|route| Self { route, line: None })
    }
}

impl HttpOptions {
    pub(super) fn is_given(&self, word: &str) -> bool {
        match word {
            "route" => !self.route.is_empty(),
            "trust-forwarded" => self.trust_forwarded.is_some(),
            "tls-headers" => self.tls_headers,
            "log-paths" => self.log_paths.is_some(),
            _ => false,
        }
    }

    /// All upstreams of the routes.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Upstream> {
        self.route.iter().flat_map(|option| &option.route.upstreams)
    }

    /// The first upstream of the routes.
    pub(crate) fn first_upstream(&self) -> Option<&Upstream> {
        self.route.first()?.route.upstreams.first()
    }

    /// The routes as tables of a configuration file.
    pub(crate) fn routes_to_toml(&self) -> String {
        let mut text = String::new();
        for RouteOption { route, .. } in &self.route {
            let upstreams: Vec<_> =
                route.upstreams.iter().map(|one| format!("{:?}", one.to_string())).collect();
            let (host, upstreams) = (route.host.to_string(), upstreams.join(", "));
            let _ = write!(
                text,
                "\n[[route]]\nhost = {host:?}\npath = {:?}\nupstreams = [{upstreams}]\n",
                route.prefix
            );
            for (name, timeout) in route.timeouts.given() {
                let _ = writeln!(text, "{name} = {:?}", quantity::shown(timeout.as_secs_f64(), "s"));
            }
        }
        text
    }

    /// # Errors
    /// When two routes are the same; names both.
    fn check_routes(&self, has_upstream: bool) -> anyhow::Result<()> {
        let place = |n: usize| match self.route.get(n) {
            Some(RouteOption { line: Some(line), .. }) => format!("the route in line {line}"),
            Some(_) => format!("--route {}", n + 1),
            None => "--upstream".to_owned(),
        };
        let name = |route: &RouteOption| route.route.name();
        let names = self.route.iter().map(name).chain(has_upstream.then(|| "/".to_owned()));
        let names: Vec<String> = names.collect();
        for (second, name) in names.iter().enumerate() {
            if let Some(first) = names[..second].iter().position(|other| other == name) {
                return Err(usage(format!("{} and {} both serve {name}", place(first), place(second))));
            }
        }
        Ok(())
    }
}

impl ProxyOptions {
    /// The configuration of HTTP mode; `None` in TCP mode.
    ///
    /// # Errors
    /// When an option does not belong to the mode, or two routes are the same.
    pub(crate) fn http_config(&self) -> anyhow::Result<Option<HttpConfig>> {
        if let Some((word, reason)) = self.other_mode_options().find(|(word, _)| self.is_given(word)) {
            return Err(usage(format!("--{word} {reason}")));
        }
        if self.mode == ProxyMode::Tcp {
            return Ok(None);
        }
        self.http.check_routes(!self.upstream.is_empty())?;
        let mut limits = self.http_limits.values().clone();
        if !self.http_limits.is_given("upstream-connections-max") {
            // Most of the descriptors are for clients.
            let share = usize::try_from(proxy_core::raise_descriptor_limit() / 4).unwrap_or(usize::MAX);
            limits.upstream_connections_max = limits.upstream_connections_max.min(share.max(1));
        }
        Ok(Some(HttpConfig {
            routes: self.http.route.iter().map(|option| option.route.clone()).collect(),
            limits,
            trusted_forwarders: self.http.trust_forwarded.as_deref().cloned().unwrap_or_default(),
            sends_tls_fields: self.http.tls_headers,
            records_paths: self.http.log_paths != Some(OnOff::Off),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::mode::tests::{options, refused};

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
        flags.http.route = ["/=h:1", "x/=h:2"].map(|text| text.parse().unwrap()).to_vec();
        assert_eq!(flags.http_config().unwrap_err().to_string(), "--route 1 and --upstream both serve /");
        flags.http.route = ["/b=h:1", "x/=h:2", "/b/=h:3"].map(|text| text.parse().unwrap()).to_vec();
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
