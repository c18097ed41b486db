//! The settings of HTTP mode: limits, which can change, and values that are fixed for the whole run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proxy_core::{HandlerSettings, LiveOptions, NameRoute, Upstream, UpstreamSockets, fixed_setting};
use records::setting::{Setting, SettingError, Value};
use records::text::quantity;

use crate::config::HttpConfig;
use crate::config::limits::HttpLimits;
use crate::route::Route;

const ROUTE: &str = "proxy.route";
const PASS: &str = "proxy.pass";

/// What HTTP mode adds to the proxy's settings.
#[derive(Debug)]
pub(crate) struct HttpSettings {
    fixed: Vec<Setting>,
    /// Those of requests, and those of passed TLS. Locked by the thread that lists or reloads them.
    routes: Mutex<(Vec<Route>, Vec<NameRoute>)>,
    limits: Arc<LiveOptions<HttpLimits>>,
    /// Workers that share the pool.
    workers: Arc<AtomicUsize>,
}

impl HttpSettings {
    pub(crate) fn new(
        config: &HttpConfig,
        routes: (Vec<Route>, Vec<NameRoute>),
        limits: Arc<LiveOptions<HttpLimits>>,
        workers: Arc<AtomicUsize>,
    ) -> Self {
        let on_or_off = |is_on| if is_on { "on" } else { "off" }.to_owned();
        let timeouts: Vec<_> = routes.0.iter().filter_map(timeouts).collect();
        let timeouts =
            (!timeouts.is_empty()).then(|| fixed_setting("proxy.route-timeouts", timeouts.join(" ")));
        let mut fixed = vec![
            fixed_setting("proxy.mode", "http".to_owned()),
            fixed_setting("proxy.trust-forwarded", config.trusted_forwarders.to_string()),
            fixed_setting("proxy.tls-headers", on_or_off(config.sends_tls_fields)),
            fixed_setting("proxy.request-header", config.request_rules.to_string()),
            fixed_setting("proxy.response-header", config.response_rules.to_string()),
            fixed_setting("proxy.log-paths", on_or_off(config.records_paths)),
        ];
        fixed.extend(timeouts);
        Self { fixed, routes: Mutex::new(routes), limits, workers }
    }

    fn routes(&self) -> MutexGuard<'_, (Vec<Route>, Vec<NameRoute>)> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The timeouts of a route, such as `/api:response-timeout=5s,queue-timeout=1s`; `None` if it has none of its own.
fn timeouts(route: &Route) -> Option<String> {
    let shown =
        |(name, timeout): (&str, Duration)| format!("{name}={}", quantity::shown(timeout.as_secs_f64(), "s"));
    let given: Vec<_> = route.timeouts.given().map(shown).collect();
    (!given.is_empty()).then(|| format!("{}:{}", route.name(), given.join(",")))
}

impl HandlerSettings for HttpSettings {
    fn list(&self) -> Vec<Setting> {
        let (routes, passed) = &*self.routes();
        let routes: Vec<_> = routes.iter().map(Route::to_string).collect();
        let passed: Vec<_> = passed.iter().map(NameRoute::to_string).collect();
        let named = [fixed_setting(ROUTE, routes.join(" ")), fixed_setting(PASS, passed.join(" "))];
        self.fixed.iter().cloned().chain(named).chain(self.limits.list()).collect()
    }

    fn set(&self, name: &str, value: &Value) -> Option<Result<Setting, SettingError>> {
        if [ROUTE, PASS].contains(&name) || self.fixed.iter().any(|setting| setting.name == name) {
            return Some(Err(SettingError::Restart(name.to_owned())));
        }
        self.limits.set(name, value)
    }

    fn destinations(&self) -> Vec<Vec<Upstream>> {
        let (routes, passed) = &*self.routes();
        let passed = passed.iter().map(|route| route.upstreams().to_vec());
        routes.iter().map(|route| route.upstreams.clone()).chain(passed).collect()
    }

    fn own_destinations(&self) -> usize {
        self.routes().0.len()
    }

    fn set_destinations(&self, destinations: Vec<Vec<Upstream>>) {
        let (routes, passed) = &mut *self.routes();
        let mut destinations = destinations.into_iter();
        routes.iter_mut().zip(&mut destinations).for_each(|(route, of)| route.upstreams = of);
        passed.iter_mut().zip(destinations).for_each(|(route, of)| route.set_upstreams(of));
    }

    fn upstream_sockets(&self) -> UpstreamSockets {
        UpstreamSockets {
            per_client: usize::from(!self.routes().1.is_empty()),
            pooled: self.limits.current().upstream_connections_max,
        }
    }

    fn set_workers(&self, workers: usize) {
        self.workers.store(workers, Ordering::Relaxed);
    }

    fn unused_settings(&self) -> &'static [&'static str] {
        if self.routes().1.is_empty() { &["proxy-protocol", "half-closed-timeout"] } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use proxy_core::{Certificate, Proxy, ProxyConfig, raise_descriptor_limit};

    use super::*;
    use crate::{HttpLimits, RouteTimeouts, bind};

    fn proxy(upstream_connections_max: usize) -> Proxy {
        let certificate = Certificate::generate(&["localhost".to_owned()]).unwrap();
        let listen = vec!["127.0.0.1:0".parse().unwrap()];
        let config = ProxyConfig::new(listen, "unix:/nowhere".parse().unwrap(), certificate);
        let config = ProxyConfig { workers: std::num::NonZeroUsize::MIN, ..config };
        let http = HttpConfig {
            routes: vec![Route {
                timeouts: RouteTimeouts {
                    queue: Some(Duration::from_millis(500)),
                    response: Some(Duration::from_secs(5)),
                    ..RouteTimeouts::default()
                },
                .."/api=unix:/elsewhere,unix:/nowhere".parse().unwrap()
            }],
            limits: HttpLimits { upstream_connections_max, ..HttpLimits::default() },
            ..HttpConfig::default()
        };
        bind(config, http, proxy_core::ListenerSource::Bind).unwrap().start().unwrap()
    }

    fn value(proxy: &Proxy, name: &str) -> Option<Value> {
        proxy.settings().into_iter().find(|setting| setting.name == name).map(|setting| setting.value)
    }

    #[test]
    fn settings_show_mode_and_routes_and_omit_tcp_options() {
        let proxy = proxy(10);
        assert_eq!(value(&proxy, "proxy.mode"), Some(Value::Text("http".to_owned())));
        let routes = "/api=unix:/elsewhere,unix:/nowhere /=unix:/nowhere".to_owned();
        assert_eq!(value(&proxy, "proxy.route"), Some(Value::Text(routes)));
        let timeouts = "/api:queue-timeout=500ms,response-timeout=5s".to_owned();
        assert_eq!(value(&proxy, "proxy.route-timeouts"), Some(Value::Text(timeouts)));
        assert_eq!(value(&proxy, "proxy.half-closed-timeout"), None);
        let set = |name: &str| proxy.set(name, &Value::Number(1.0)).unwrap_err();
        assert_eq!(set("proxy.mode"), SettingError::Restart("proxy.mode".to_owned()));
        let unused = "proxy.half-closed-timeout".to_owned();
        assert_eq!(set(&unused), SettingError::Unknown(unused));
        proxy.set("proxy.streams-max", &Value::Number(7.0)).unwrap();
        assert_eq!(value(&proxy, "proxy.streams-max"), Some(Value::Number(7.0)));
    }

    #[test]
    fn a_larger_pool_leaves_fewer_descriptors_to_clients() {
        let proxy = proxy(10);
        let number = |name| match value(&proxy, name) {
            Some(Value::Number(number)) => number as usize,
            other => panic!("{name}: {other:?}"),
        };
        let before = number("proxy.connections-max");
        let set = |name, n: usize| proxy.set(name, &Value::Number(n as f64));
        set("proxy.upstream-connections-max", 60).unwrap();
        assert_eq!(number("proxy.connections-max"), before - 50);
        set("proxy.connections-max", before - 50).unwrap();
        let refused = set("proxy.upstream-connections-max", 61).unwrap_err().to_string();
        assert!(refused.contains(&raise_descriptor_limit().to_string()), "{refused}");
        assert_eq!(number("proxy.upstream-connections-max"), 60);
    }
}
