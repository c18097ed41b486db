//! The configuration of HTTP mode.

pub(crate) mod header_rules;
pub(crate) mod limits;
pub(crate) mod settings;

use proxy_core::{HostPattern, Networks, Upstream};

use self::header_rules::HeaderRules;
use self::limits::HttpLimits;
use crate::route::Route;
use crate::route::timeouts::RouteTimeouts;

/// Everything that HTTP mode needs to know besides the [`ProxyConfig`](proxy_core::ProxyConfig).
#[derive(Clone, Debug, Default)]
pub struct HttpConfig {
    /// Where requests go. Requests that match no route go to the upstreams of the
    /// [`ProxyConfig`](proxy_core::ProxyConfig), or get 404 if there are none.
    pub routes: Vec<Route>,
    /// Bounds that can change while the proxy runs.
    pub limits: HttpLimits,
    /// Peers whose `X-Forwarded-For` names the client; the fields of others are replaced.
    pub trusted_forwarders: Networks,
    /// Whether upstreams learn TLS version, cipher, server name, and name and certificate of the client, by `X-TLS-*` fields.
    pub sends_tls_fields: bool,
    /// Changes to the fields that upstreams get.
    pub request_rules: HeaderRules,
    /// Changes to the fields that clients get.
    pub response_rules: HeaderRules,
    /// Whether records of requests name their path.
    pub records_paths: bool,
}

impl HttpConfig {
    /// The routes, and last the default route to `upstreams`, if there are any. Figures of a route have its index.
    pub fn all_routes(&self, upstreams: &[Upstream]) -> Vec<Route> {
        let default = Route {
            host: HostPattern::Any,
            prefix: "/".to_owned(),
            upstreams: upstreams.to_vec(),
            timeouts: RouteTimeouts::default(),
        };
        let default = (!upstreams.is_empty()).then_some(default);
        self.routes.iter().cloned().chain(default).collect()
    }
}
