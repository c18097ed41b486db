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
    /// Peers whose X-Forwarded-For, -Proto and -Host are believed and continued, such as 10.0.0.0/8 [default: none]
    #[arg(long, value_name = "CIDR,...")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trust_forwarded: Option<ParsedValue<Networks>>,
    /// Tell upstreams TLS version, cipher suite, server name, and verified client name and certificate, by X-TLS-* fields
    #[arg(long)]
    pub(crate) tls_headers: bool,
    /// Change a field of requests: 'set NAME: VALUE', 'add NAME: VALUE' or 'remove NAME'; VALUE may have %{client},
    /// %{tls_version} and %{server_name}; may be repeated
    #[arg(long, value_name = "RULE")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) request_header: Vec<ParsedValue<HeaderRule>>,
    /// Change a field of responses, the proxy's own included; may be repeated
    #[arg(long, value_name = "RULE")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) response_header: Vec<ParsedValue<HeaderRule>>,
    /// Whether records of requests name their path, without the query [default: on]
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
