//! What both test programs share: waiting, and clients of TLS.

mod websocket_accept;

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

pub(crate) use websocket_accept::websocket_accept;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Waits for `condition`, and fails with `what` if it does not come true.
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// How clients that trust `certificate` and offer these application protocols speak TLS.
pub(crate) fn client_config(certificate: &[u8], alpn: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.to_vec())).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Connects to `localhost` at `addr`.
pub(crate) fn connect(addr: SocketAddr, config: Arc<ClientConfig>) -> TlsStream {
    let socket = TcpStream::connect(addr).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(config, name).unwrap(), socket)
}
