//! Where the traffic of a proxy goes: what a reload may change of it, and what not.

use std::iter;

use proxy_core::{NameRoute, Upstream};
use proxy_http::Route;
use records::setting::Value;

use crate::cli::ProxyOptions;
use crate::cli::options::mode::ProxyMode;
use crate::cli::options::route::{PASS, ROUTE, RouteOption, UPSTREAM};
use crate::error::usage;
use crate::value::values;

impl ProxyOptions {
    /// The first upstream, of a route if only these have some.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn first_upstream(&self) -> anyhow::Result<Upstream> {
        let of_route = || self.any_route()?.upstreams().first().cloned();
        let takes = match self.mode {
            ProxyMode::Tcp => "plaintext",
            ProxyMode::Http => "requests",
        };
        values(&self.upstream).into_iter().next().or_else(of_route).ok_or_else(|| {
            usage(format!(
                "--upstream and --route are missing: the address that takes the {takes} (unix:/path or host:port; \
                 `tlsdash demo` needs none)"
            ))
        })
    }

    /// Whether any upstream speaks TLS.
    pub(crate) fn is_tls_used(&self) -> bool {
        let upstreams = values(&self.upstream);
        let of_routes = self.route.iter().flat_map(RouteOption::upstreams);
        upstreams.iter().chain(of_routes).any(Upstream::is_tls)
    }
}

/// The destinations of a proxy, in its order.
#[derive(Debug)]
pub(crate) struct Destinations {
    /// What each serves, with everything about it that is fixed for a run.
    pub(crate) served: Vec<String>,
    /// The upstreams of each.
    pub(crate) upstreams: Vec<Vec<Upstream>>,
    /// The proxy's settings that name them, with their values.
    pub(crate) settings: Vec<(String, Value)>,
}

impl Destinations {
    /// # Errors
    /// When a route goes not with the mode, or two are the same.
    pub(crate) fn of(options: &ProxyOptions) -> anyhow::Result<Self> {
        let others = values(&options.upstream);
        Ok(match options.http_config()? {
            Some(http) => Self::of_http(http.all_routes(&others), &options.request_routes()?.1),
            None => Self::of_tcp(others, &options.name_routes()?),
        })
    }

    fn of_http(routes: Vec<Route>, passed: &[NameRoute]) -> Self {
        let served = routes.iter().map(|route| format!("{} {:?}", route.name(), route.timeouts));
        Self {
            served: served.chain(names(passed)).collect(),
            settings: vec![setting(ROUTE, &routes), setting(PASS, passed)],
            upstreams: routes.into_iter().map(|route| route.upstreams).chain(upstreams(passed)).collect(),
        }
    }

    fn of_tcp(others: Vec<Upstream>, routes: &[NameRoute]) -> Self {
        let (passed, terminated): (Vec<_>, Vec<_>) = routes.iter().partition(|route| route.is_passed());
        let settings = vec![setting(UPSTREAM, &others), setting(ROUTE, &terminated), setting(PASS, &passed)];
        let rest = format!("any other name: {}", !others.is_empty());
        Self {
            served: iter::once(rest).chain(names(routes)).collect(),
            upstreams: iter::once(others).chain(upstreams(routes)).collect(),
            settings,
        }
    }
}

fn names(routes: &[NameRoute]) -> impl Iterator<Item = String> {
    routes.iter().map(|route| format!("{} {}", route.host(), route.is_passed()))
}

fn upstreams(routes: &[NameRoute]) -> impl Iterator<Item = Vec<Upstream>> {
    routes.iter().map(|route| route.upstreams().to_vec())
}

fn setting(option: &str, words: &[impl ToString]) -> (String, Value) {
    let words: Vec<_> = words.iter().map(ToString::to_string).collect();
    (format!("proxy.{option}"), Value::Text(words.join(" ")))
}
