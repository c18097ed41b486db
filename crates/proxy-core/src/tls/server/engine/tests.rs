use std::io::{Read, Write};
use std::sync::Arc;

use proptest::prelude::*;
use records::kinds::ConnectionOutcome;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use super::*;
use crate::tls::engine::PARTIAL_BYTES_MAX;
use crate::tls::{Certificate, LiveTls, Tls};

static VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

/// A client and an engine with a wire between them.
struct EnginePair {
    client: ClientConnection,
    engine: Engine,
    /// Plaintext that has come out of the engine.
    plaintext: Buffer,
    /// Ciphertext on its way to the client.
    output: Buffer,
    /// Plaintext that has come out at the client.
    received: Vec<u8>,
}

impl EnginePair {
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        let certificate = Certificate::generate(&[]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(certificate.leaf_der().to_vec())).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
        client.set_buffer_limit(None);
        let engine =
            Engine::new(&LiveTls::new(Tls::new(certificate), false).unwrap().config().unwrap()).unwrap();
        Self { client, engine, plaintext: Buffer::default(), output: Buffer::default(), received: Vec::new() }
    }

    fn connected(version: &'static SupportedProtocolVersion) -> Self {
        let mut pair = Self::new(version);
        while pair.client.is_handshaking() || pair.engine.is_handshaking() {
            pair.exchange(&mut |bytes| vec![bytes.to_vec()]);
        }
        pair.exchange(&mut |bytes| vec![bytes.to_vec()]);
        pair
    }

    /// The client's pending bytes.
    fn client_sends(&mut self) -> Vec<u8> {
        let mut wire = Vec::new();
        while self.client.wants_write() {
            self.client.write_tls(&mut wire).unwrap();
        }
        wire
    }

    fn receive(&mut self, ciphertext: &[u8]) -> Result<(), EngineError> {
        let mut buffer = vec![0; self.engine.partial_len()];
        buffer.extend_from_slice(ciphertext);
        self.engine.receive(&mut buffer, &mut self.plaintext, &mut self.output)
    }

    /// Exchanges the pending bytes of both, the client's in the pieces that `split` makes.
    fn exchange(&mut self, split: &mut dyn FnMut(&[u8]) -> Vec<Vec<u8>>) {
        let wire = self.client_sends();
        for piece in split(&wire) {
            self.receive(&piece).unwrap();
        }
        self.client_takes();
    }

    /// Passes its pending bytes to the client.
    fn client_takes(&mut self) {
        let mut wire = self.output.as_slice();
        while !wire.is_empty() {
            self.client.read_tls(&mut wire).unwrap();
            let state = self.client.process_new_packets().unwrap();
            let before = self.received.len();
            self.received.resize(before + state.plaintext_bytes_to_read(), 0);
            self.client.reader().read_exact(&mut self.received[before..]).unwrap();
        }
        self.output.clear();
    }

    fn client_reads(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.received)
    }
}

fn bytewise(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.iter().map(|&byte| vec![byte]).collect()
}

#[test]
fn ciphertext_may_come_a_byte_at_a_time() {
    for version in VERSIONS {
        let mut pair = EnginePair::new(version);
        while pair.client.is_handshaking() || pair.engine.is_handshaking() {
            pair.exchange(&mut bytewise);
        }
        pair.client.writer().write_all(b"hello").unwrap();
        pair.exchange(&mut bytewise);
        assert_eq!(pair.plaintext.as_slice(), b"hello");
        assert_eq!(pair.engine.records.partial.capacity(), 0, "nothing is left over, and nothing is kept");
    }
}

#[test]
fn data_may_come_together_with_the_end_of_the_handshake() {
    for version in VERSIONS {
        let mut pair = EnginePair::new(version);
        pair.client.writer().write_all(b"early bird").unwrap();
        while pair.plaintext.is_empty() {
            pair.exchange(&mut |bytes| vec![bytes.to_vec()]);
        }
        assert!(!pair.engine.is_handshaking());
        assert_eq!(pair.plaintext.as_slice(), b"early bird");
    }
}

#[test]
fn empty_input_and_empty_plaintext_change_nothing() {
    for version in VERSIONS {
        let mut pair = EnginePair::new(version);
        pair.receive(b"").unwrap();
        let mut pair = EnginePair::connected(version);
        pair.receive(b"").unwrap();
        pair.engine.encrypt(b"", &mut pair.output).unwrap();
        assert!(pair.output.is_empty() && pair.plaintext.is_empty());
    }
}

#[test]
fn the_server_name_is_known_once_the_hello_has_been_read() {
    for version in VERSIONS {
        let mut pair = EnginePair::new(version);
        assert_eq!(pair.engine.session().server_name(), "");
        let hello = pair.client_sends();
        pair.receive(&hello).unwrap();
        assert_eq!(pair.engine.session().server_name(), "localhost");
        // Another connection of the same thread does not inherit it.
        let mut other = EnginePair::new(version);
        other.receive(b"").unwrap();
        assert_eq!(other.engine.session().server_name(), "");
    }
}

#[test]
fn a_close_notify_ends_what_is_handed_out() {
    for version in VERSIONS {
        let mut pair = EnginePair::connected(version);
        pair.client.writer().write_all(b"last words").unwrap();
        pair.client.send_close_notify();
        let mut wire = pair.client_sends();
        wire.extend_from_slice(&wire.clone());
        pair.receive(&wire).unwrap();
        assert!(pair.engine.is_peer_closed());
        assert_eq!(pair.plaintext.as_slice(), b"last words", "what follows a close_notify is ignored");
        assert_eq!(pair.engine.partial_len(), 0);
        // The other direction continues, and ends independently.
        pair.engine.encrypt(b"an answer", &mut pair.output).unwrap();
        pair.engine.close_notify(&mut pair.output).unwrap();
        pair.client_takes();
        assert_eq!(pair.client_reads(), b"an answer");
    }
}

#[test]
fn both_may_end_in_either_order() {
    for version in VERSIONS {
        let mut pair = EnginePair::connected(version);
        pair.engine.close_notify(&mut pair.output).unwrap();
        pair.client_takes();
        assert_eq!(pair.client_reads(), b"");
        pair.client.writer().write_all(b"still here").unwrap();
        pair.client.send_close_notify();
        let wire = pair.client_sends();
        pair.receive(&wire).unwrap();
        assert_eq!(pair.plaintext.as_slice(), b"still here");
        assert!(pair.engine.is_peer_closed());
        assert_eq!(pair.engine.encrypt(b"too late", &mut pair.output), Err(EngineError::NotWritable));
    }
}

#[test]
fn a_record_in_pieces_does_not_disturb_what_is_sent_meanwhile() {
    for version in VERSIONS {
        let mut pair = EnginePair::connected(version);
        pair.client.writer().write_all(b"a request").unwrap();
        let wire = pair.client_sends();
        for piece in bytewise(&wire) {
            pair.receive(&piece).unwrap();
            pair.engine.encrypt(b"x", &mut pair.output).unwrap();
        }
        pair.client_takes();
        assert_eq!(pair.plaintext.as_slice(), b"a request");
        assert_eq!(pair.client_reads(), vec![b'x'; wire.len()]);
    }
}

#[test]
fn a_key_update_is_answered_in_front_of_the_next_data() {
    let mut pair = EnginePair::connected(&rustls::version::TLS13);
    for size in [7, 50, 10_000] {
        pair.client.refresh_traffic_keys().unwrap();
        pair.client.writer().write_all(b"new keys").unwrap();
        let wire = pair.client_sends();
        // In small pieces a part of the update is kept while something is sent; in one piece, data ends the input.
        for piece in wire.chunks(size) {
            pair.receive(piece).unwrap();
            pair.engine.encrypt(b"y", &mut pair.output).unwrap();
        }
        pair.client_takes();
        assert_eq!(pair.client_reads(), vec![b'y'; wire.len().div_ceil(size)], "pieces of {size}");
    }
    assert_eq!(pair.plaintext.len(), 24);
}

/// Sends pieces of data, each behind a `KeyUpdate` that asks for one in return, until that fails: how many were taken.
fn updated_keys(pair: &mut EnginePair, pieces: usize, piece: &[u8]) -> Result<usize, (usize, EngineError)> {
    for n in 0..pieces {
        pair.client.refresh_traffic_keys().unwrap();
        pair.client.writer().write_all(piece).unwrap();
        let wire = pair.client_sends();
        pair.receive(&wire).map_err(|error| (n, error))?;
        pair.plaintext.clear();
        pair.engine.encrypt(b"y", &mut pair.output).unwrap();
        pair.client_takes();
    }
    Ok(pieces)
}

#[test]
fn key_updates_in_turn_with_data_are_bounded_by_the_data() {
    let mut pair = EnginePair::connected(&rustls::version::TLS13);
    let mut other = EnginePair::connected(&rustls::version::TLS13);
    let failed = updated_keys(&mut pair, 1_000, b"x").unwrap_err();
    assert_eq!(failed, (254, EngineError::TooManyKeys));
    assert!(failed.1.to_string().contains("too often (256 times, and once in 64 KiB)"), "{}", failed.1);
    assert_eq!(pair.receive(b""), Err(EngineError::Failed));
    // Connections of a thread are told apart, and a long one may change its keys for ever.
    assert_eq!(updated_keys(&mut other, 1_000, &vec![7; 66_000]), Ok(1_000));
}

#[test]
fn what_is_not_tls_fails_with_an_alert_and_fails_again() {
    let mut pair = EnginePair::new(&rustls::version::TLS13);
    let error = pair.receive(b"GET / HTTP/1.1\r\n\r\n").unwrap_err();
    assert_eq!(error.handshake_outcome(pair.engine.has_answered()), ConnectionOutcome::NotTls);
    assert_eq!(pair.output.as_slice()[..3], [21, 3, 3]);
    assert_eq!(pair.receive(b"more"), Err(EngineError::Failed));
    assert_eq!(pair.engine.encrypt(b"x", &mut pair.output), Err(EngineError::Failed));
    assert_eq!(pair.engine.close_notify(&mut pair.output), Err(EngineError::Failed));
}

#[test]
fn a_damaged_record_fails_after_the_data_before_it() {
    for version in VERSIONS {
        let mut pair = EnginePair::connected(version);
        pair.client.writer().write_all(b"whole").unwrap();
        let mut wire = pair.client_sends();
        pair.client.writer().write_all(b"damaged").unwrap();
        wire.extend(pair.client_sends());
        *wire.last_mut().unwrap() ^= 1;
        let error = pair.receive(&wire).unwrap_err();
        assert!(matches!(error, EngineError::Tls(Error::DecryptError)), "{error:?}");
        assert_eq!(pair.plaintext.as_slice(), b"whole");
        let mut alert = pair.output.as_slice();
        pair.client.read_tls(&mut alert).unwrap();
        let told = pair.client.process_new_packets().unwrap_err();
        assert!(told.to_string().contains("BadRecordMac"), "{told}");
    }
}

#[test]
fn a_handshake_message_in_endless_fragments_is_refused_and_bounded() {
    let mut pair = EnginePair::new(&rustls::version::TLS13);
    // A ClientHello that claims 60,000 bytes and comes one byte a record.
    let mut header = [1, 0, 0xea, 0x60].into_iter();
    let mut failed = None;
    for _ in 0..70_000 {
        let record = [22, 3, 1, 0, 1, header.next().unwrap_or(0)];
        if let Err(error) = pair.receive(&record) {
            failed = Some(error);
            break;
        }
        assert!(pair.engine.partial_len() <= PARTIAL_BYTES_MAX);
    }
    assert_eq!(failed, Some(EngineError::TooFragmented));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_goes_in_comes_out_however_it_is_cut(
        is_tls13: bool,
        messages in prop::collection::vec((0..70_000_usize, 0..70_000_usize), 1..6),
        cuts in prop::collection::vec(1..40_000_usize, 1..20),
    ) {
        let mut pair = EnginePair::connected(VERSIONS[usize::from(is_tls13)]);
        let mut cuts = cuts.iter().cycle();
        let mut split = |bytes: &[u8]| {
            let (mut rest, mut pieces) = (bytes, Vec::new());
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                pieces.push(piece.to_vec());
                rest = after;
            }
            pieces
        };
        for (i, (inward, outward)) in messages.into_iter().enumerate() {
            let (inward, outward) = (vec![i as u8; inward], vec![!(i as u8); outward]);
            pair.client.writer().write_all(&inward).unwrap();
            pair.engine.encrypt(&outward, &mut pair.output).unwrap();
            let mut received = Vec::new();
            let wire = pair.client_sends();
            for piece in split(&wire) {
                pair.receive(&piece).unwrap();
                received.extend_from_slice(pair.plaintext.as_slice());
                pair.plaintext.clear();
            }
            prop_assert!(received == inward);
            pair.client_takes();
            prop_assert!(pair.client_reads() == outward);
        }
    }

    #[test]
    fn garbage_is_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), at in 0..300_usize) {
        let mut pair = EnginePair::new(&rustls::version::TLS13);
        let mut hello = pair.client_sends();
        let at = at.min(hello.len());
        hello.splice(at..(at + bytes.len()).min(hello.len()), bytes);
        let _ = pair.receive(&hello);
        let _ = pair.receive(&hello);
        let _ = pair.engine.close_notify(&mut pair.output);
    }
}
