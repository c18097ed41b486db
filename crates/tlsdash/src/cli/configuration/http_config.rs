//! The options of HTTP mode as the proxy takes them.

use proxy_http::{HeaderRule, HeaderRules, HttpConfig};

use super::ProxyOptions;
use crate::cli::options::http::OnOff;
use crate::cli::options::mode::ProxyMode;
use crate::error::usage;
use crate::value::{ParsedValue, values};

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
            self.name_routes()?;
            return Ok(None);
        }
        let (routes, _) = self.request_routes()?;
        let rules = |option: &str, rules: &[ParsedValue<HeaderRule>]| {
            HeaderRules::new(values(rules)).map_err(|error| usage(format!("--{option}: {error}")))
        };
        let mut limits = self.http_limits.values().clone();
        if !self.http_limits.is_given("upstream-connections-max") {
            // Most of the descriptors are for clients.
            let share = usize::try_from(proxy_core::raise_descriptor_limit() / 4).unwrap_or(usize::MAX);
            limits.upstream_connections_max = limits.upstream_connections_max.min(share.max(1));
        }
        Ok(Some(HttpConfig {
            routes,
            limits,
            trusted_forwarders: self.http.trust_forwarded.as_deref().cloned().unwrap_or_default(),
            sends_tls_fields: self.http.tls_headers,
            request_rules: rules("request-header", &self.http.request_header)?,
            response_rules: rules("response-header", &self.http.response_header)?,
            records_paths: self.http.log_paths != Some(OnOff::Off),
        }))
    }
}
