//! The certificates that a server presents, asked for with a handshake of our own.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::{ClientConnection, Error};

use super::{TlsOptions, TlsSetup, TlsSetupError, Trust, refusal_reason};

#[derive(Debug, thiserror::Error)]
pub enum FetchCertificatesError {
    /// The name cannot be asked for.
    #[error(transparent)]
    Setup(#[from] TlsSetupError),
    /// It cannot be reached, or does not answer in time.
    #[error("{0}")]
    Io(io::Error),
    /// It does not complete a handshake.
    #[error("{0}")]
    Refused(String),
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
    let mut stream = TcpStream::connect_timeout(&address, timeout).map_err(FetchCertificatesError::Io)?;
    stream.set_read_timeout(Some(timeout)).map_err(FetchCertificatesError::Io)?;
    stream.set_write_timeout(Some(timeout)).map_err(FetchCertificatesError::Io)?;
    let refused = |error: &Error| FetchCertificatesError::Refused(refusal_reason(error));
    let mut connection = ClientConnection::new(Arc::new(setup.config.clone()), setup.name.clone())
        .map_err(|error| refused(&error))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|error| {
            match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
                Some(tls) => refused(tls),
                None => FetchCertificatesError::Io(error),
            }
        })?;
    }
    let chain = connection.peer_certificates().unwrap_or_default();
    let chain = chain.iter().map(|certificate| certificate.to_vec()).collect();
    connection.send_close_notify();
    // The server need not hear of the end.
    let _ = connection.write_tls(&mut stream);
    Ok(chain)
}
