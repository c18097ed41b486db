//! Full handshakes, one after the other, with nothing around the TLS library: what the generator is compared with.
//!
//! `bare_handshakes ADDRESS:PORT SECONDS` prints how many there were. Each is a new connection without a session, from
//! connecting to the end of the handshake and a `close_notify`; certificates are not checked, and the key exchange is X25519.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments.next().ok_or("ADDRESS:PORT is missing")?.parse()?;
    let seconds: f64 = arguments.next().ok_or("SECONDS is missing")?.parse()?;
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    let config = Arc::new(config);
    let name = ServerName::try_from("localhost")?;
    let ends = Instant::now() + Duration::from_secs_f64(seconds);
    let mut handshakes = 0_u64;
    while Instant::now() < ends {
        let mut tcp = TcpStream::connect(address)?;
        tcp.set_nodelay(true)?;
        let mut connection = ClientConnection::new(Arc::clone(&config), name.clone())?;
        while connection.is_handshaking() {
            connection.complete_io(&mut tcp)?;
        }
        connection.send_close_notify();
        connection.write_tls(&mut tcp)?;
        handshakes += 1;
    }
    println!("{handshakes} handshakes");
    Ok(())
}
