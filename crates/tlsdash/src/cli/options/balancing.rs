//! How upstreams are checked, and how connections are spread over them.

use std::time::Duration;

use clap::Args;
use proxy_core::{Balance, UpstreamCheck};
use serde::{Deserialize, Serialize};

use crate::cli::options::mode::ProxyMode;
use crate::error::usage;
use crate::value::{ParsedValue, PositiveDuration};

/// How upstreams are checked, and how connections are spread over them.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct BalancingOptions {
    /// Check upstreams: tcp connects, tls also completes a handshake, http[:/PATH] also asks for a page; words behind it
    /// are status=200-399, interval=2s, rise=2 and fall=3, such as http:/healthz,interval=5s [default: none]
    #[arg(long, value_name = "CHECK")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_check: Option<ParsedValue<UpstreamCheck>>,
    /// Choice of the upstream, by weight: least-connections, hash-client (those of a client address to the same one),
    /// or hash-header:NAME in HTTP mode, where each request has its own [default: least-connections]
    #[arg(long, value_name = "HOW")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) balance: Option<ParsedValue<Balance>>,
    /// Time until a returned upstream has its share; also one that is up again [default: none]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slow_start: Option<ParsedValue<PositiveDuration>>,
}

impl BalancingOptions {
    /// The check. `is_tls_used`: whether any upstream speaks TLS.
    ///
    /// # Errors
    /// If it has nothing to act on.
    pub(crate) fn check(&self, is_tls_used: bool) -> anyhow::Result<Option<UpstreamCheck>> {
        let check = self.upstream_check.as_deref().cloned();
        if check.as_ref().is_some_and(UpstreamCheck::needs_tls) && !is_tls_used {
            return Err(usage("--upstream-check tls goes with an upstream that speaks TLS: tls://HOST:PORT"));
        }
        Ok(check)
    }

    /// # Errors
    /// If TCP mode has no such key.
    pub(crate) fn balance(&self, mode: ProxyMode) -> anyhow::Result<Balance> {
        let balance = self.balance.as_deref().cloned().unwrap_or_default();
        match (mode, &balance) {
            (ProxyMode::Tcp, Balance::HashHeader(_)) => {
                Err(usage(format!("--balance {balance} goes with --mode http only")))
            }
            _ => Ok(balance),
        }
    }

    pub(crate) fn slow_start(&self) -> Duration {
        self.slow_start.as_ref().map_or(Duration::ZERO, |time| time.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_of_tls_without_an_upstream_that_speaks_it_is_refused() {
        let options = |text: &str| BalancingOptions {
            upstream_check: Some(text.parse().unwrap()),
            ..BalancingOptions::default()
        };
        let error = options("tls,fall=1").check(false).unwrap_err().to_string();
        assert!(error.contains("goes with an upstream that speaks TLS: tls://HOST:PORT"), "{error}");
        assert!(
            options("tls").check(true).unwrap().is_some() && options("tcp").check(false).unwrap().is_some()
        );
    }

    #[test]
    fn only_http_mode_balances_by_a_field() {
        let options = BalancingOptions {
            balance: Some("hash-header:X-User".parse().unwrap()),
            ..BalancingOptions::default()
        };
        let error = options.balance(ProxyMode::Tcp).unwrap_err().to_string();
        assert_eq!(error, "--balance hash-header:x-user goes with --mode http only");
        assert!(options.balance(ProxyMode::Http).is_ok());
        assert_eq!(BalancingOptions::default().balance(ProxyMode::Tcp).unwrap(), Balance::LeastConnections);
    }
}
