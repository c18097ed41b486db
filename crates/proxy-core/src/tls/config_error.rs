//! Why settings, certificates and keys make no configuration.

use rustls::server::VerifierBuilderError;
use tls_client::TrustError;

#[derive(Debug, thiserror::Error)]
pub enum TlsConfigError {
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// The cryptographic library refuses to make a key.
    #[error("cannot set up TLS: no key for session tickets can be made")]
    NoTicketKey,
    #[error("cannot use the authorities for clients: {0}")]
    ClientCa(VerifierBuilderError),
    #[error("{0}; name a file with --upstream-ca")]
    UpstreamTrust(TrustError),
    #[error("there is no certificate to present")]
    NoCertificate,
    /// There is no version between the oldest and the newest.
    #[error("tls-min is later than tls-max")]
    NoVersion,
    /// No cipher suite is for an enabled version.
    #[error(
        "no cipher suite of ciphers is for TLS {version}: name one, or leave that version out (tls-min, tls-max)"
    )]
    NoCipher { version: &'static str },
    #[error("{word} {value}: expected {low} to {high}")]
    OutOfRange { word: String, value: f64, low: f64, high: f64 },
    /// There is no group for the key exchange.
    #[error("groups are empty: a key exchange needs one")]
    NoGroup,
    /// The rotation would create too many keys.
    #[error("ticket-rotation must be at least a thirtieth of ticket-lifetime")]
    RotationTooShort,
}
