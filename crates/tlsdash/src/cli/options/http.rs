//! Options of HTTP mode, by flags and by the configuration file.

use clap::{Args, ValueEnum};
use proxy_core::Networks;
use proxy_http::HeaderRule;
use serde::{Deserialize, Serialize};

use crate::value::{ParsedValue, one_or_many};

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
    /// Peers whose X-Forwarded-* are believed; -For, -Proto and -Host are continued, such as of 10.0.0.0/8 [default:
    /// none]
    #[arg(long, value_name = "CIDR,...")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trust_forwarded: Option<ParsedValue<Networks>>,
    /// Tell upstreams of TLS by X-TLS-* fields: version, cipher suite, server name, and verified client name and
    /// certificate
    #[arg(long)]
    pub(crate) tls_headers: bool,
    /// Change a field of requests; RULE is 'set NAME: VALUE', 'add NAME: VALUE' or 'remove NAME', and VALUE may have
    /// %{client}, %{tls_version} and %{server_name}; may be repeated
    #[arg(long, value_name = "RULE")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) request_header: Vec<ParsedValue<HeaderRule>>,
    /// Change a field of responses; the proxy's own included; may be repeated
    #[arg(long, value_name = "RULE")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) response_header: Vec<ParsedValue<HeaderRule>>,
    /// Record the paths of requests: on or off; without the query [default: on]
    #[arg(long, value_name = "SWITCH")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) log_paths: Option<OnOff>,
}

impl HttpOptions {
    pub(crate) fn is_given(&self, word: &str) -> bool {
        match word {
            "trust-forwarded" => self.trust_forwarded.is_some(),
            "tls-headers" => self.tls_headers,
            "request-header" => !self.request_header.is_empty(),
            "response-header" => !self.response_header.is_empty(),
            "log-paths" => self.log_paths.is_some(),
            _ => false,
        }
    }
}
