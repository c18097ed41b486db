//! The routes of a configuration as the proxy takes them.

use std::collections::{BTreeMap, HashMap};

use proxy_core::NameRoute;
use proxy_http::Route;

use super::ProxyOptions;
use crate::cli::options::route::{PASS, ROUTE, RouteOption};
use crate::error::usage;

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
