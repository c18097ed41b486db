//! How upstreams are checked, and how connections are spread over them.

use clap::Args;
use proxy_core::UpstreamCheck;
use serde::{Deserialize, Serialize};

use super::value::ParsedValue;
use crate::cli::usage;

/// How upstreams are checked.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct BalancingOptions {
    /// Check upstreams: tcp connects, tls also completes a handshake, http[:/PATH] also asks for a page; words behind it
    /// are status=200-399, interval=2s, rise=2 and fall=3, such as http:/healthz,interval=5s [default: none]
    #[arg(long, value_name = "CHECK")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream_check: Option<ParsedValue<UpstreamCheck>>,
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_of_tls_without_an_upstream_that_speaks_it_is_refused() {
        let options = |text: &str| BalancingOptions { upstream_check: Some(text.parse().unwrap()) };
        let error = options("tls,fall=1").check(false).unwrap_err().to_string();
        assert!(error.contains("goes with an upstream that speaks TLS: tls://HOST:PORT"), "{error}");
        assert!(
            options("tls").check(true).unwrap().is_some() && options("tcp").check(false).unwrap().is_some()
        );
    }
}
