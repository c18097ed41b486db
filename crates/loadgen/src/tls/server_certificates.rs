//! The certificates that a server presents, asked for with a handshake of our own.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{TlsOptions, TlsSetup, TlsSetupError, Trust};

#[derive(Debug, thiserror::Error)]
pub enum FetchCertificatesError {
    /// The name cannot be asked for.
    #[error(transparent)]
    Setup(#[from] TlsSetupError),
    /// It cannot be reached, or does not complete a handshake in time.
    #[error("{0}")]
    Handshake(String),
}

/// Completes a handshake with a server, whatever its certificate, and returns its certificate chain in DER, the leaf
/// first. With an empty name it sends no SNI.
///
/// # Errors
/// If the server cannot be reached, or does not complete a handshake in time.
pub fn fetch_certificates(
    address: SocketAddr,
    name: &str,
    timeout: Duration,
) -> Result<Vec<Vec<u8>>, FetchCertificatesError> {
    let host = if name.is_empty() { address.ip().to_string() } else { name.to_owned() };
    let setup = TlsSetup::new(&Trust::Insecure, &host, &TlsOptions::default())?;
    let failed = |error: &dyn ToString| FetchCertificatesError::Handshake(error.to_string());
    let tcp = TcpStream::connect_timeout(&address, timeout).map_err(|error| failed(&error))?;
    Ok(setup.probe_handshake(tcp.into(), timeout).map_err(|error| failed(&error))?.chain)
}
