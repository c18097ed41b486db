//! Full handshakes, one after the other, with nothing around the TLS library: what the generator is compared with.
//!
//! `bare_handshakes ADDRESS:PORT SECONDS [PATH]` prints how many there were. Each is a new connection without a session;
//! certificates are not checked, and the key exchange is X25519. With a path it carries a `HEAD` request for it, whose
//! answer is read up to the server's end, as the generator's connections do; without one it ends with the handshake.

#![allow(clippy::print_stdout, reason = "it is what this program is for")]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, ClientConnection, Stream};
use rustls_pki_types::ServerName;
use tls_client::{Trust, verifier};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let address: SocketAddr = arguments.next().ok_or("ADDRESS:PORT is missing")?.parse()?;
    let seconds: f64 = arguments.next().ok_or("SECONDS is missing")?.parse()?;
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519];
    let provider = Arc::new(provider);
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier(&Trust::Insecure, &provider)?)
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    let config = Arc::new(config);
    let name = ServerName::try_from("localhost")?;
    let ends = Instant::now() + Duration::from_secs_f64(seconds);
    let request = arguments.next().map(|path| {
        format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").into_bytes()
    });
    let mut answer = Vec::new();
    let mut handshakes = 0_u64;
    while Instant::now() < ends {
        let mut tcp = TcpStream::connect(address)?;
        tcp.set_nodelay(true)?;
        let mut connection = ClientConnection::new(Arc::clone(&config), name.clone())?;
        while connection.is_handshaking() {
            connection.complete_io(&mut tcp)?;
        }
        if let Some(request) = &request {
            let mut stream = Stream::new(&mut connection, &mut tcp);
            stream.write_all(request)?;
            answer.clear();
            stream.read_to_end(&mut answer)?;
            if !answer.starts_with(b"HTTP/1.1 200 ") {
                return Err("the answer is not 200".into());
            }
        }
        connection.send_close_notify();
        // The server may be gone already.
        let _ = connection.write_tls(&mut tcp);
        handshakes += 1;
    }
    println!("{handshakes} handshakes");
    Ok(())
}
