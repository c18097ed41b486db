//! Binds a proxy in HTTP mode.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use proxy_core::{
    BoundProxy, ClientRates, HostPattern, ListenerSource, LiveOptions, NameRoute, Proxy, ProxyConfig,
    ProxyStartError,
};

use crate::config::HttpConfig;
use crate::config::settings::HttpSettings;
use crate::connection::HttpConnection;
use crate::route::destination::{Destination, Routing};
use crate::route::{DuplicateRoute, Route, RouteTable};
use crate::worker::{HttpShared, HttpWorker};

/// An error at the start of a proxy in HTTP mode.
#[derive(Debug, thiserror::Error)]
pub enum HttpStartError {
    #[error(transparent)]
    DuplicateRoute(#[from] DuplicateRoute),
    /// Some upstreams of a route speak HTTP/2, and others do not.
    #[error(
        "the upstreams of the route {0} speak different protocols; expected h2c:// and h2:// for all of them, or for none"
    )]
    MixedProtocols(String),
    /// For a reason of TCP mode too.
    #[error(transparent)]
    Start(#[from] ProxyStartError),
}

/// Binds a proxy that serves HTTP.
///
/// # Errors
/// When two routes are the same, or for the reasons of [`Proxy::bind`].
pub fn bind(
    mut config: ProxyConfig,
    http: HttpConfig,
    listeners: ListenerSource,
) -> Result<BoundProxy, HttpStartError> {
    let routes = http.all_routes(&config.upstreams);
    let passed: Vec<_> = config.routes.iter().filter(|route| route.is_passed()).cloned().collect();
    let hosts: Vec<_> = passed.iter().map(|route| route.host().clone()).collect();
    if !passed.is_empty() {
        // Those that are passed come first: only they have destinations of their own.
        config.routes = passed.iter().cloned().chain(terminated_names(&http.routes)).collect();
    }
    let limits = Arc::new(LiveOptions::new(http.limits.clone()));
    let workers = Arc::new(AtomicUsize::new(config.workers.get()));
    let settings = Arc::new(HttpSettings::new(
        &http,
        (routes.clone(), passed),
        Arc::clone(&limits),
        Arc::clone(&workers),
    ));
    let shared = Arc::new(HttpShared {
        routing: routing(&routes, &hosts)?,
        limits,
        request_rates: ClientRates::default(),
        trusted_forwarders: http.trusted_forwarders,
        sends_tls_fields: http.sends_tls_fields,
        request_rules: http.request_rules,
        response_rules: http.response_rules,
        records_paths: http.records_paths,
        workers,
    });
    let bound = Proxy::bind_with::<HttpConnection>(config, listeners, settings, move |upstreams, worker| {
        HttpWorker::new(Arc::clone(&shared), Arc::clone(upstreams), worker)
    })?;
    Ok(bound)
}

/// The hosts of routes, which are terminated also where `*.HOST` is passed.
fn terminated_names(routes: &[Route]) -> impl Iterator<Item = NameRoute> {
    let hosts: BTreeMap<String, &Route> =
        routes.iter().map(|route| (route.host.to_string(), route)).collect();
    // A route without a host has no name.
    hosts.into_iter().filter_map(|(host, route)| NameRoute::new(&host, route.upstreams.clone()).ok())
}

/// Requests for a passed host have no route.
fn routing(routes: &[Route], passed: &[HostPattern]) -> Result<Routing, HttpStartError> {
    let is_mixed = |route: &&Route| {
        route.upstreams.iter().any(|upstream| upstream.scheme.is_http2() != speaks_http2(route))
    };
    if let Some(route) = routes.iter().find(is_mixed) {
        return Err(HttpStartError::MixedProtocols(route.name()));
    }
    let table = RouteTable::new(routes, passed)?;
    let destination = |(index, route): (usize, &Route)| Destination {
        index,
        is_http2: speaks_http2(route),
        timeouts: route.timeouts,
    };
    let destinations = routes.iter().enumerate().map(destination).collect();
    Ok(Routing { table, destinations })
}

fn speaks_http2(route: &Route) -> bool {
    route.upstreams.first().is_some_and(|upstream| upstream.scheme.is_http2())
}
