use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixListener;

use records::metrics::ProxyCounter;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::*;
use crate::connection::{READ_BYTES_MAX, READS_PER_TURN_MAX};
use crate::relay::Relay;
use crate::{Certificate, Proxy, ProxyConfig, Upstream};

type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Shakes hands, sends two bytes, and encrypts a flood that is not sent yet.
fn client(addr: std::net::SocketAddr, leaf: Vec<u8>) -> (Tls, Vec<u8>) {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(leaf)).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = Arc::new(config.unwrap().with_root_certificates(roots).with_no_client_auth());
    let connection = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
    let mut tls = StreamOwned::new(connection, TcpStream::connect(addr).unwrap());
    tls.write_all(b"go").unwrap();
    tls.conn.set_buffer_limit(None);
    tls.conn.writer().write_all(&vec![1; 8 << 20]).unwrap();
    let mut flood = Vec::new();
    while tls.conn.wants_write() {
        tls.conn.write_tls(&mut flood).unwrap();
    }
    (tls, flood)
}

#[test]
fn a_flooding_client_has_a_bounded_part_read_in_a_turn() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("app.sock");
    let upstream = UnixListener::bind(&socket).unwrap();
    let certificate = Certificate::generate(&[]).unwrap();
    let leaf = certificate.leaf_der().to_vec();
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let mut config = ProxyConfig::new(listen, Upstream::unix(socket), certificate);
    config.workers = std::num::NonZeroUsize::MIN;
    let (addr, mut worker) = Proxy::bind(config).unwrap().into_first_worker();
    let mut events = Events::with_capacity(EVENTS_MAX);
    let mut turn = |worker: &mut Worker<Relay>| {
        worker.wait(&mut events, Some(Duration::from_millis(10))).unwrap();
        worker.serve();
        worker.context.stats.delta.counters[ProxyCounter::WireIn]
    };
    let shaking = std::thread::spawn(move || client(addr, leaf));
    while !shaking.is_finished() {
        turn(&mut worker);
    }
    let (mut tls, flood) = shaking.join().unwrap();
    turn(&mut worker);
    // The upstream accepts no more bytes, so the client's bytes must not fill a buffer.
    let (mut deaf, _) = upstream.accept().unwrap();
    deaf.read_exact(&mut [0; 2]).unwrap();
    deaf.shutdown(Shutdown::Read).unwrap();
    tls.sock.set_nonblocking(true).unwrap();
    let (mut sent, mut taken, mut most) = (0, turn(&mut worker), 0);
    while sent < flood.len() {
        match tls.sock.write(&flood[sent..]) {
            Ok(n) => sent += n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let now = turn(&mut worker);
                most = most.max(now - taken);
                taken = now;
            }
            Err(error) => panic!("{error}"),
        }
    }
    let bound = u64::from(READS_PER_TURN_MAX) * READ_BYTES_MAX as u64;
    assert!(most > bound / 2, "nothing waited to be read: {most} bytes a turn at the most");
    assert!(most <= bound, "{most} bytes in one turn");
}
