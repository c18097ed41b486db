use std::io::{Read, Write};

use proptest::prelude::*;
use rustls::{ServerConfig, ServerConnection};

use super::unbuffered::CARRY_BYTES_MAX;
use super::*;
use crate::tls::Trust;

/// Both ends of a connection, with nothing in between.
struct TlsPair {
    client: ClientTls,
    server: Arc<ServerConfig>,
    forgetting: SessionReset,
}

fn pair(version: &'static rustls::SupportedProtocolVersion) -> TlsPair {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    server.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
    let trust = Trust::Certificate(made.cert.der().to_vec());
    let setup = TlsSetup::new(&trust, "localhost", &TlsOptions::default()).unwrap();
    let forgetting = SessionReset::default();
    let client = setup.client(1, false, forgetting.clone());
    TlsPair { client, server: Arc::new(server), forgetting }
}

#[derive(Default)]
struct ReceivedData {
    plaintext: Vec<u8>,
    handshake: Option<Handshake>,
}

/// Lets the client take in the server's bytes in pieces of these sizes, and the server the answers to them.
fn exchange(
    engine: &mut TlsEngine,
    server: &mut ServerConnection,
    pieces: &mut impl Iterator<Item = usize>,
    corrupt: impl Fn(usize, &mut [u8]),
    received: &mut ReceivedData,
) -> Result<(), TlsError> {
    let mut out = Outbox::default();
    engine.receive(&mut [], &mut out, |_| {})?;
    for round in 0.. {
        server.read_tls(&mut out.filled()).unwrap();
        out.clear();
        let _ = server.process_new_packets();
        let mut bytes = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        if bytes.is_empty() {
            return Ok(());
        }
        corrupt(round, &mut bytes);
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(pieces.next().unwrap().min(rest.len()));
            rest = after;
            receive(engine, piece, &mut out, received)?;
            received.handshake = received.handshake.or_else(|| engine.new_handshake());
        }
    }
    Ok(())
}

/// Passes new bytes to the client behind the kept ones.
fn receive(
    engine: &mut TlsEngine,
    new: &[u8],
    out: &mut Outbox,
    received: &mut ReceivedData,
) -> Result<(), TlsError> {
    let mut buffer = vec![0; CARRY_BYTES_MAX + new.len()];
    let kept = engine.restore(&mut buffer);
    buffer[kept..kept + new.len()].copy_from_slice(new);
    engine.receive(&mut buffer[..kept + new.len()], out, |plaintext| {
        received.plaintext.extend_from_slice(plaintext);
    })
}

#[test]
fn forgotten_sessions_are_not_offered() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let pair = pair(version);
        let connect = || {
            let (mut engine, offered) = pair.client.begin(true).unwrap();
            let mut server = ServerConnection::new(Arc::clone(&pair.server)).unwrap();
            let mut received = ReceivedData::default();
            let mut whole = std::iter::repeat(usize::MAX);
            exchange(&mut engine, &mut server, &mut whole, |_, _| {}, &mut received).unwrap();
            (offered, received.handshake.unwrap().resumed)
        };
        assert_eq!([connect(), connect()], [(false, false), (true, true)]);
        pair.forgetting.ask();
        assert_eq!([connect(), connect()], [(false, false), (true, true)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pieces_make_no_difference(
        sizes in proptest::collection::vec(1_usize..3_000, 1..20),
        sent in proptest::collection::vec(any::<u8>(), 0..50_000),
        is_tls13 in any::<bool>(),
    ) {
        let pair = pair(if is_tls13 { &rustls::version::TLS13 } else { &rustls::version::TLS12 });
        let mut pieces = sizes.into_iter().cycle();
        for resumed in [false, true] {
            let (mut engine, offered) = pair.client.begin(true).unwrap();
            prop_assert_eq!(offered, resumed);
            let mut server = ServerConnection::new(Arc::clone(&pair.server)).unwrap();
            server.writer().write_all(&sent).unwrap();
            let mut received = ReceivedData::default();
            exchange(&mut engine, &mut server, &mut pieces, |_, _| {}, &mut received).unwrap();
            prop_assert_eq!(received.handshake.map(|handshake| handshake.resumed), Some(resumed));
            prop_assert!(received.plaintext == sent);

            let mut out = Outbox::default();
            engine.send(&sent, &mut out).unwrap();
            engine.close(&mut out).unwrap();
            let mut echoed = Vec::new();
            let mut wire = out.filled();
            while !wire.is_empty() {
                server.read_tls(&mut wire).unwrap();
                server.process_new_packets().unwrap();
                // A clean end: the server finds the close_notify.
                let _ = server.reader().read_to_end(&mut echoed);
            }
            prop_assert!(echoed == sent);
        }
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic(
        sizes in proptest::collection::vec(1_usize..3_000, 1..20),
        damaged_round in 0_usize..2,
        at in any::<prop::sample::Index>(),
        bits in 1_u8..,
        is_tls13 in any::<bool>(),
    ) {
        let pair = pair(if is_tls13 { &rustls::version::TLS13 } else { &rustls::version::TLS12 });
        let (mut engine, _) = pair.client.begin(false).unwrap();
        let mut server = ServerConnection::new(Arc::clone(&pair.server)).unwrap();
        server.writer().write_all(b"hello").unwrap();
        let corrupt = |round, bytes: &mut [u8]| {
            if round == damaged_round {
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
            }
        };
        let mut received = ReceivedData::default();
        let mut pieces = sizes.into_iter().cycle();
        let result = exchange(&mut engine, &mut server, &mut pieces, corrupt, &mut received);
        // Later input must not panic either, whatever has happened.
        let mut out = Outbox::default();
        let again = receive(&mut engine, &[22, 3, 3, 0, 1, 0], &mut out, &mut received);
        prop_assert!(result.is_ok() || again.is_err());
        let _ = engine.send(b"x", &mut out);
        let _ = engine.close(&mut out);
        prop_assert!(received.plaintext.is_empty() || received.plaintext == b"hello");
    }
}
