//! Why TLS with an upstream has failed, in words.

use std::io;

use rustls::{AlertDescription, Error, InvalidMessage};
use tls_client::{TrustFlags, advice, reason};

use crate::tls::engine::EngineError;

/// The flags that advice names.
const TRUST_FLAGS: TrustFlags = TrustFlags {
    authorities: "--upstream-ca FILE",
    name: "--upstream-name NAME",
    insecure: "--upstream-tls-insecure",
};

/// What helps if an upstream does not speak HTTP/2.
const TRY_HTTP1: &str = "name it with tls:// for HTTP/1.1";

/// Why TLS with an upstream has failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{reason}{}{advice}", if .advice.is_empty() { "" } else { "; " })]
pub struct UpstreamTlsError {
    pub cause: UpstreamTlsFailure,
    reason: String,
    advice: String,
}

/// The cause, as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamTlsFailure {
    /// The upstream's certificate is refused.
    Certificate,
    /// The upstream has sent an alert.
    Alert,
    /// Another breach of the protocol, such as an upstream that does not speak TLS.
    Protocol,
}

impl UpstreamTlsError {
    /// The failure of TLS in an error of a connection, if it is one.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<EngineError> for UpstreamTlsError {
    fn from(error: EngineError) -> Self {
        let EngineError::Tls(error) = error else {
            let reason = error.to_string();
            let advice = if error == EngineError::NotHttp2 { TRY_HTTP1 } else { "" }.to_owned();
            return Self { cause: UpstreamTlsFailure::Protocol, reason, advice };
        };
        match &error {
            Error::InvalidCertificate(_) | Error::NoCertificatesPresented => Self {
                cause: UpstreamTlsFailure::Certificate,
                reason: reason(&error),
                advice: advice(&error, TRUST_FLAGS),
            },
            Error::AlertReceived(AlertDescription::NoApplicationProtocol) => EngineError::NotHttp2.into(),
            Error::AlertReceived(alert) => Self {
                cause: UpstreamTlsFailure::Alert,
                reason: format!("it refuses the TLS handshake with the alert {alert:?}"),
                advice: String::new(),
            },
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => Self {
                cause: UpstreamTlsFailure::Protocol,
                reason: "it does not speak TLS on this port".to_owned(),
                advice: "name it without tls://".to_owned(),
            },
            _ => Self { cause: UpstreamTlsFailure::Protocol, reason: reason(&error), advice: String::new() },
        }
    }
}
