//! Routes: the upstreams of a request, by its host and the beginning of its path.

pub(crate) mod destination;
pub(crate) mod timeouts;

use std::fmt;
use std::str::FromStr;

use proxy_core::{
    HostPattern, HostTable, ParseHostError, Upstream, UpstreamsError, check_upstreams, split_route,
    without_port,
};

use crate::route::timeouts::RouteTimeouts;

/// Where requests of a host and a path prefix go, such as `/api=unix:/run/api.sock` or
/// `shop.example/static=127.0.0.1:9000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub host: HostPattern,
    /// The path's beginning, on whole segments: `/api` is that of `/api` and `/api/users`, not of `/apis`. It begins with
    /// `/` and ends with none, except for `/` itself.
    pub prefix: String,
    /// The upstreams; at least one.
    pub upstreams: Vec<Upstream>,
    pub timeouts: RouteTimeouts,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a route: {problem}; expected [HOST]/PATH=UPSTREAM[,UPSTREAM...], such as /api=unix:/run/api.sock"
)]
pub struct ParseRouteError {
    text: String,
    problem: RouteProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum RouteProblem {
    #[error("the path is missing")]
    NoPath,
    #[error("the path is not in its normal form, {0:?}")]
    NotNormal(String),
    #[error(transparent)]
    Host(#[from] ParseHostError),
    #[error(transparent)]
    Upstreams(#[from] UpstreamsError),
}

/// Two routes have the same host and path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the routes {first} and {second} both serve {host}{prefix}")]
pub struct DuplicateRoute {
    /// The position of the first, from 1.
    pub first: usize,
    /// The position of the other.
    pub second: usize,
    host: HostPattern,
    prefix: String,
}

/// The reason why no route serves a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectError {
    /// No route has its host and path.
    #[error("no route serves this host and path")]
    NotFound,
    /// The TLS of clients of this host is passed to an upstream: the connection is one for another host.
    #[error("another server serves this host")]
    Passed,
    /// The path as it is and its normal form select different routes: the proxy and the upstream could disagree on what
    /// is asked for.
    #[error("the path is ambiguous")]
    Ambiguous,
}

/// All routes, in the order in which a request tries them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteTable {
    /// The longest path of each host first.
    hosts: HostTable<Vec<Prefix>>,
}

/// A path prefix and its route's index.
#[derive(Clone, Debug)]
struct Prefix {
    path: String,
    route: Result<usize, SelectError>,
}

impl RouteTable {
    /// No route serves `passed` hosts.
    ///
    /// # Errors
    /// If two routes have the same host and path.
    pub(crate) fn new(routes: &[Route], passed: &[HostPattern]) -> Result<Self, DuplicateRoute> {
        let mut table = Self::default();
        for (route, Route { host, prefix, .. }) in routes.iter().enumerate() {
            let is_same = |other: &Route| other.host == *host && other.prefix == *prefix;
            if let Some(first) = routes[..route].iter().position(is_same) {
                let (first, second) = (first + 1, route + 1);
                return Err(DuplicateRoute { first, second, host: host.clone(), prefix: prefix.clone() });
            }
            let prefixes = table.hosts.entry(host);
            prefixes.push(Prefix { path: prefix.clone(), route: Ok(route) });
            prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.path.len()));
        }
        for host in passed {
            table.hosts.entry(host).push(Prefix { path: "/".to_owned(), route: Err(SelectError::Passed) });
        }
        Ok(table)
    }

    /// The index of the route of a host, which may end with a port, and a path without its query.
    ///
    /// # Errors
    /// If no route matches, the host is passed, or the path is ambiguous.
    pub(crate) fn select(&self, host: &str, path: &str) -> Result<usize, SelectError> {
        let host = without_port(host);
        if is_normal(path) {
            return self.lookup(host, path);
        }
        // What no client can send otherwise is not ambiguous.
        let selected = self.lookup(host, &decoded(path, |byte| !byte.is_ascii_graphic()));
        // Some upstreams take a backslash for a slash.
        let readings = [&SLASH[..], &SLASHES].map(|separators| self.lookup(host, &normal(path, separators)));
        if readings.iter().any(|other| *other != selected) {
            return Err(SelectError::Ambiguous);
        }
        selected
    }

    fn lookup(&self, host: &str, path: &str) -> Result<usize, SelectError> {
        let found = self.hosts.find_map(host, |prefixes| {
            prefixes.iter().find(|prefix| begins_with(path, &prefix.path)).map(|prefix| prefix.route)
        });
        found.unwrap_or(Err(SelectError::NotFound))
    }
}

/// Whether a path begins with a prefix, on whole segments.
fn begins_with(path: &str, prefix: &str) -> bool {
    prefix == "/" || path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What ends a segment of a path, and what some upstreams take for it too.
const SLASH: [char; 1] = ['/'];
const SLASHES: [char; 2] = ['/', '\\'];

/// Whether a path is certainly its own normal form.
fn is_normal(path: &str) -> bool {
    let mut last = b'_';
    let changes = |byte: u8| {
        let pair = (std::mem::replace(&mut last, byte), byte);
        matches!(pair, (_, b'%' | b'\\') | (b'/', b'/' | b'.'))
    };
    path.starts_with('/') && !path.bytes().any(changes)
}

/// The form in which an upstream may understand a path: escapes decoded, `.` and `..` resolved, `//` as `/`.
fn normal(path: &str, separators: &[char]) -> String {
    let decoded = decoded(path, |_| true);
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split(separators) {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

/// A path whose escapes of these bytes are decoded.
fn decoded(path: &str, is_decoded: impl Fn(u8) -> bool) -> String {
    let bytes = path.as_bytes();
    let hex = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if let (b'%', Some(high), Some(low)) = (byte, hex(at + 1), hex(at + 2))
            && let escaped = (high * 16 + low) as u8
            && is_decoded(escaped)
        {
            decoded.push(escaped);
            at += 3;
        } else {
            decoded.push(byte);
            at += 1;
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

impl FromStr for Route {
    type Err = ParseRouteError;

    fn from_str(text: &str) -> Result<Self, ParseRouteError> {
        parse(text).map_err(|problem| ParseRouteError { text: text.to_owned(), problem })
    }
}

fn parse(text: &str) -> Result<Route, RouteProblem> {
    let (from, upstreams) = split_route(text)?;
    let (host, path) = from.split_at(from.find('/').ok_or(RouteProblem::NoPath)?);
    route(host, path, upstreams)
}

fn route(host: &str, path: &str, upstreams: Vec<Upstream>) -> Result<Route, RouteProblem> {
    check_upstreams(&upstreams)?;
    if !path.starts_with('/') {
        return Err(RouteProblem::NoPath);
    }
    let prefix = normal(path, &SLASHES);
    if path != prefix && path.strip_suffix('/') != Some(prefix.as_str()) {
        return Err(RouteProblem::NotNormal(prefix));
    }
    Ok(Route { host: host.parse()?, prefix, upstreams, timeouts: RouteTimeouts::default() })
}

impl Route {
    /// A route of a host (empty for every host) and a path, without timeouts of its own.
    ///
    /// # Errors
    /// As for its text.
    pub fn new(host: &str, path: &str, upstreams: Vec<Upstream>) -> Result<Self, ParseRouteError> {
        route(host, path, upstreams)
            .map_err(|problem| ParseRouteError { text: format!("{host}{path}"), problem })
    }

    /// Its name in figures: host and path, such as `shop.example/static`.
    pub fn name(&self) -> String {
        format!("{}{}", self.host, self.prefix)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let upstreams: Vec<_> = self.upstreams.iter().map(ToString::to_string).collect();
        write!(f, "{}={}", self.name(), upstreams.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(routes: &[&str]) -> RouteTable {
        let routes: Vec<Route> =
            routes.iter().map(|from| format!("{from}=127.0.0.1:1").parse().unwrap()).collect();
        RouteTable::new(&routes, &[]).unwrap()
    }

    #[test]
    fn the_longest_prefix_of_whole_segments_wins() {
        let table = table(&["/", "/api", "/api/v2/", "/static"]);
        for (path, expected) in [
            ("/", 0),
            ("/apis", 0),
            ("/api", 1),
            ("/api/", 1),
            ("/api/v1", 1),
            ("/api/v2", 2),
            ("/api/v2/users", 2),
            ("/api/v20", 1),
            ("/static/a.css", 3),
        ] {
            assert_eq!(table.select("a.example", path), Ok(expected), "{path}");
        }
    }

    #[test]
    fn an_exact_host_comes_before_a_wildcard_before_none() {
        let table = table(&["/", "*.example/", "shop.example/", "*.shop.example/cart"]);
        for (host, path, expected) in [
            ("other", "/", 0),
            ("example", "/", 0),
            ("a.example", "/", 1),
            ("shop.example", "/cart", 2),
            ("SHOP.example:8443", "/", 2),
            ("shop.example.", "/", 2),
            ("shop.example.:443", "/", 2),
            ("a.shop.example", "/cart", 3),
            ("a.shop.example", "/", 1),
            ("[::1]:8443", "/", 0),
        ] {
            assert_eq!(table.select(host, path), Ok(expected), "{host}{path}");
        }
    }

    #[test]
    fn a_path_whose_normal_form_has_another_route_is_refused() {
        let table = table(&["/", "/admin"]);
        for path in [
            "/x/../admin",
            "/%61dmin",
            "//admin",
            "/./admin",
            "/admin/..",
            "/admin/%2e%2e/x",
            "/x\\..\\admin",
            "/x\\y/../admin",
            "/admin/x\\y/../..",
        ] {
            assert_eq!(table.select("a", path), Err(SelectError::Ambiguous), "{path}");
        }
        assert_eq!(table.select("a", "/x/%20y"), Ok(0));
        assert_eq!(table.select("a", "/x/%0ay"), Ok(0));
        assert_eq!(table.select("a", "/admin/./x"), Ok(1));
    }

    #[test]
    fn a_path_that_clients_must_encode_has_a_route() {
        let table = table(&["/", "/a b", "/ü/x"]);
        for (path, expected) in
            [("/a%20b", 1), ("/a%20b/c", 1), ("/%c3%bc/x", 2), ("/%C3%BC/x", 2), ("/ü/x", 2), ("/a%20bc", 0)]
        {
            assert_eq!(table.select("a", path), Ok(expected), "{path}");
        }
        for path in ["/%61%20b", "/a%2520b/../a%20b", "//a%20b"] {
            assert_eq!(table.select("a", path), Err(SelectError::Ambiguous), "{path}");
        }
    }

    #[test]
    fn without_a_matching_route_nothing_is_selected() {
        assert_eq!(table(&["/api"]).select("a", "/other"), Err(SelectError::NotFound));
    }

    #[test]
    fn a_passed_host_has_no_route() {
        let routes: Vec<Route> = ["/=h:1", "a.example/=h:1"].map(|text| text.parse().unwrap()).to_vec();
        let passed = ["b.test", "*.example"].map(|host| host.parse().unwrap());
        let table = RouteTable::new(&routes, &passed).unwrap();
        for (host, expected) in [
            ("b.test", Err(SelectError::Passed)),
            ("B.test.:443", Err(SelectError::Passed)),
            ("x.example", Err(SelectError::Passed)),
            ("a.example", Ok(1)),
            ("test", Ok(0)),
        ] {
            assert_eq!(table.select(host, "/x"), expected, "{host}");
            assert_eq!(table.select(host, "/x/../y"), expected, "{host}");
        }
    }

    #[test]
    fn a_second_route_for_the_same_place_is_refused() {
        let routes: Vec<Route> = ["/a=h:1", "x/a=h:1", "/a/=h:2"].map(|text| text.parse().unwrap()).to_vec();
        let error = RouteTable::new(&routes, &[]).unwrap_err();
        assert_eq!(error.to_string(), "the routes 1 and 3 both serve /a");
    }

    #[test]
    fn a_route_reads_back_as_it_is_written() {
        assert_eq!("Shop.example./=h:1".parse::<Route>().unwrap().to_string(), "shop.example/=h:1");
        for text in ["/=h:1", "/api=unix:/run/a.sock,h:2", "*.example/x/y=h:1", "[::1]/=h:1"] {
            assert_eq!(text.parse::<Route>().unwrap().to_string(), text);
        }
        let route = Route::new("", "/api/", vec!["h:1".parse().unwrap()]).unwrap();
        assert_eq!(route.name(), "/api");
        assert!(Route::new("", "/api", Vec::new()).is_err());
    }

    #[test]
    fn a_malformed_route_says_what_was_expected() {
        for (text, problem) in [
            ("/api", "the upstream is missing"),
            ("api=h:1", "the path is missing"),
            ("/a/../b=h:1", "not in its normal form, \"/b\""),
            ("a b/=h:1", "the host is malformed"),
            ("*./=h:1", "the host is malformed"),
            ("a:8443/=h:1", "the host has a port"),
            ("[::1]:8443/=h:1", "the host has a port"),
            ("/api=h", "the port is missing"),
            ("/api=h:1,", "the port is missing"),
            ("/api=h:1,h:1", "the upstream h:1 is given twice"),
        ] {
            let error = text.parse::<Route>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("expected [HOST]/PATH=UPSTREAM"), "{error}");
        }
    }
}
