//! `ClientHello`s of real clients, and what becomes of them by chance.

use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::dice::SeededRandom;
use crate::support::PATIENCE;

/// What the clients that there are begin with: `configs` with rustls, then `OpenSSL` and `GnuTLS` in all versions.
pub(crate) fn recorded(configs: &[Arc<ClientConfig>]) -> Vec<Vec<u8>> {
    let of_rustls = configs.iter().map(|config| {
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = rustls::ClientConnection::new(Arc::clone(config), name).unwrap();
        let mut hello = Vec::new();
        client.write_tls(&mut hello).unwrap();
        hello
    });
    let openssl = [
        &["-tls1", "-cipher", "ALL:@SECLEVEL=0"][..],
        &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
        &["-tls1_2"],
        &["-tls1_2", "-alpn", "h2,http/1.1", "-status", "-servername", "a.very.long.name.example.org"],
        &["-tls1_3"],
        &["-tls1_3", "-groups", "X25519:P-256:P-384", "-alpn", "h2"],
        &["-noservername", "-legacy_renegotiation"],
    ];
    let of_openssl = openssl.iter().map(|arguments| {
        record_of(|addr| {
            let mut command = Command::new("openssl");
            command.args(["s_client", "-connect", &addr.to_string()]).args(*arguments);
            command
        })
    });
    let of_gnutls = ["NORMAL", "NORMAL:-VERS-ALL:+VERS-TLS1.2:+VERS-TLS1.0"].map(|priority| {
        record_of(|addr| {
            let mut command = Command::new("gnutls-cli");
            command.args(["--insecure", "--priority", priority, "-p", &addr.port().to_string(), "127.0.0.1"]);
            command
        })
    });
    of_rustls.chain(of_openssl).chain(of_gnutls).collect()
}

/// The first record that a client sends.
fn record_of(client: impl FnOnce(SocketAddr) -> Command) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = client(listener.local_addr().unwrap());
    let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("this test needs the Debian packages openssl and gnutls-bin");
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut record = vec![0; 5];
    socket.read_exact(&mut record).unwrap();
    let mut rest = vec![0; usize::from(u16::from_be_bytes([record[3], record[4]]))];
    socket.read_exact(&mut rest).unwrap();
    record.append(&mut rest);
    child.kill().unwrap();
    child.wait().unwrap();
    record
}

/// Changes `hello` in one to four places.
pub(crate) fn mutate(hello: &mut Vec<u8>, dice: &mut SeededRandom) {
    for _ in 0..=dice.roll(4) {
        let at = dice.roll(hello.len());
        let end = (at + 1 + dice.roll(40)).min(hello.len());
        match dice.roll(8) {
            0 => hello[at] ^= 1 << dice.roll(8),
            1 => hello[at] = [0, 1, 0x7f, 0x80, 0xfe, 0xff][dice.roll(6)],
            2 => hello[at..end].iter_mut().for_each(|byte| *byte = dice.roll(256) as u8),
            3 => drop(hello.drain(at..end)),
            4 => {
                let part = hello[at..end].to_vec();
                hello.splice(at..at, part);
            }
            5 => hello.truncate(at.max(1)),
            6 => hello.resize(hello.len() + dice.roll(3000), dice.roll(256) as u8),
            // What stands in front of many things: a length.
            _ => {
                let length = dice.roll(1 << 16) as u16;
                let at = at.min(hello.len().saturating_sub(2));
                hello.splice(at..(at + 2).min(hello.len()), length.to_be_bytes());
            }
        }
        if hello.is_empty() {
            hello.push(22);
        }
    }
    // Half of them are framed as they should be, so that what is inside is looked at.
    if dice.roll(2) == 0 && hello.len() > 9 {
        let len = hello.len() - 5;
        hello[..3].copy_from_slice(&[22, 3, 1]);
        hello[3..5].copy_from_slice(&(len as u16).to_be_bytes());
        hello[5..9].copy_from_slice(&((1 << 24 | (len - 4)) as u32).to_be_bytes());
    }
}
