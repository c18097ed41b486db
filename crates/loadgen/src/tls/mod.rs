//! TLS as an engine without I/O: ciphertext in and plaintext out, and back. Nothing outside of this module names
//! the TLS library.

mod asynchronous;
mod sessions;
mod setup;
mod verify;

use std::fmt;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::crypto::SupportedKxGroup;
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus};
use rustls::{CipherSuite, ClientConfig, CommonState, HandshakeKind, NamedGroup, ProtocolVersion};
use rustls_pki_types::ServerName;
use telemetry::LoadEvent;

use crate::ledger::Failure;
pub(crate) use asynchronous::failure;
use sessions::Sessions;
pub use setup::{Alpn, Identity, TlsOptions, TlsVersion};
pub(crate) use setup::{Stream, TlsSetup};

/// Most plaintext that goes into one record.
const RECORD_BYTES_MAX: usize = 16 * 1024;
/// What a record, or the flight of a handshake, may need beyond its plaintext at first; it grows where more is needed.
const RECORD_OVERHEAD: usize = 512;
/// Largest incomplete record, or handshake message in several records, that is kept for the next read.
const CARRY_BYTES_MAX: usize = 80 * 1024;

/// How the connections of one client begin.
#[derive(Debug)]
pub(crate) struct ClientTls {
    config: Arc<ClientConfig>,
    sessions: Arc<Sessions>,
    name: ServerName<'static>,
}

/// The connection cannot go on.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct TlsError(#[from] rustls::Error);

impl TlsError {
    /// What it means for a request.
    pub(crate) fn failure(&self) -> Failure {
        use rustls::Error as E;
        let event = match &self.0 {
            E::AlertReceived(alert) => LoadEvent::AlertReceived(u8::from(*alert)),
            E::InvalidCertificate(_) | E::NoCertificatesPresented | E::UnsupportedNameType => {
                LoadEvent::Certificate
            }
            _ => LoadEvent::Tls,
        };
        Failure::new(event, self.to_string())
    }
}

/// A completed handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub(crate) resumed: bool,
    version: ProtocolVersion,
    suite: CipherSuite,
    group: Option<NamedGroup>,
    pub(crate) alpn: Option<Alpn>,
}

impl Handshake {
    /// What a connection has agreed upon; `None` before it has.
    fn of(connection: &CommonState) -> Option<Self> {
        Some(Self {
            resumed: connection.handshake_kind()? == HandshakeKind::Resumed,
            version: connection.protocol_version()?,
            suite: connection.negotiated_cipher_suite()?.suite(),
            group: connection.negotiated_key_exchange_group().map(SupportedKxGroup::name),
            alpn: connection.alpn_protocol().and_then(Alpn::known),
        })
    }

    /// What both ends agreed upon.
    pub(crate) fn event(&self) -> LoadEvent {
        let group = self.group.map_or(0, u16::from);
        LoadEvent::Negotiated(u16::from(self.version), u16::from(self.suite), group)
    }

    /// The same in words.
    pub(crate) fn describe(&self) -> String {
        let version = match self.version {
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "TLS",
        };
        let suite = self.suite.as_str().unwrap_or("unknown cipher");
        let group = self.group.and_then(|group| group.as_str()).unwrap_or("no group");
        format!("{version} {suite} {group}, ALPN {}", self.alpn.map_or("none", Alpn::name))
    }
}

/// What is to be written to sockets. One serves all connections of a thread, and is empty between them.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Kept at its full length, so that room in it needs no clearing.
    bytes: Vec<u8>,
    used: usize,
}

impl Outbox {
    /// What is to be written.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Adds what the library wants to send by itself: a flight of the handshake, an alert, a key update.
    fn encode(&mut self, mut data: EncodeTlsData<'_, ClientConnectionData>) {
        let encoded = match data.encode(self.room(RECORD_OVERHEAD)) {
            Err(EncodeError::InsufficientSize(short)) => data.encode(self.room(short.required_size)),
            other => other,
        };
        self.used += encoded.expect("there is room for it, and it is encoded once");
    }

    fn room(&mut self, at_least: usize) -> &mut [u8] {
        if self.bytes.len() < self.used + at_least {
            self.bytes.resize(self.used + at_least, 0);
        }
        &mut self.bytes[self.used..]
    }
}

/// One connection's TLS.
pub(crate) struct Engine {
    connection: UnbufferedClientConnection,
    /// Ciphertext that does not make a whole record, or message, yet.
    carry: Vec<u8>,
    handshake_told: bool,
    peer_closed: bool,
    /// There was an error, and nothing more can be done with the connection.
    failed: bool,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("peer_closed", &self.peer_closed).finish_non_exhaustive()
    }
}

impl ClientTls {
    /// Begins a connection; the first flight goes out with the first [`Engine::receive`]. Gives also whether a
    /// session is offered for resumption, which needs one that is `wanted` and at hand.
    pub(crate) fn begin(&self, wanted: bool) -> Result<(Engine, bool), TlsError> {
        self.sessions.allow(wanted);
        let connection = UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        let engine = Engine {
            connection,
            carry: Vec::new(),
            handshake_told: false,
            peer_closed: false,
            failed: false,
        };
        Ok((engine, self.sessions.was_offered()))
    }
}

impl Engine {
    /// Puts what was kept from the last read to the front of `buffer`, and gives its length. What is read next
    /// belongs behind it, and both go to [`Engine::receive`] together.
    pub(crate) fn restore(&self, buffer: &mut [u8]) -> usize {
        buffer[..self.carry.len()].copy_from_slice(&self.carry);
        self.carry.len()
    }

    /// Takes in ciphertext, hands on the plaintext in it, and puts what TLS itself has to say into `out`.
    pub(crate) fn receive(
        &mut self,
        ciphertext: &mut [u8],
        out: &mut Outbox,
        mut plaintext: impl FnMut(&[u8]),
    ) -> Result<(), TlsError> {
        if self.failed {
            return Err(TlsError(rustls::Error::HandshakeNotComplete));
        }
        // The library keeps offsets into what it was shown before, and panics if that is gone.
        debug_assert!(ciphertext.len() >= self.carry.len(), "restored before the read");
        self.carry.clear();
        let mut at = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(&mut ciphertext[at..]);
            let mut is_drained = false;
            match state {
                Err(error) => {
                    self.fail(&mut ciphertext[at..], out);
                    return Err(error.into());
                }
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        plaintext(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(data)) => out.encode(data),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                // All that is whole has been taken in; the rest waits for more.
                Ok(_) => is_drained = true,
            }
            at += discard;
            if is_drained {
                return self.keep(&ciphertext[at..]);
            }
        }
    }

    /// Keeps what is not whole yet.
    fn keep(&mut self, rest: &[u8]) -> Result<(), TlsError> {
        // Nothing after a close_notify counts (RFC 8446, section 6.1).
        if self.peer_closed {
            return Ok(());
        }
        if rest.len() > CARRY_BYTES_MAX {
            return Err(TlsError(rustls::Error::PeerSentOversizedRecord));
        }
        self.carry.extend_from_slice(rest);
        Ok(())
    }

    /// Puts the alert about an error into `out`. The library is handed the same input again, and looks at none
    /// of it while there is something to send; after that it must not be asked again, or it panics.
    fn fail(&mut self, input: &mut [u8], out: &mut Outbox) {
        self.failed = true;
        while self.connection.wants_write()
            && let Ok(ConnectionState::EncodeTlsData(data)) = self.connection.process_tls_records(input).state
        {
            out.encode(data);
        }
    }

    /// The handshake, once, when it has been completed.
    pub(crate) fn new_handshake(&mut self) -> Option<Handshake> {
        if self.handshake_told || self.connection.is_handshaking() {
            return None;
        }
        let handshake = Handshake::of(&self.connection)?;
        self.handshake_told = true;
        Some(handshake)
    }

    /// True once the server has said that it sends no more.
    pub(crate) fn peer_has_closed(&self) -> bool {
        self.peer_closed
    }

    /// Puts plaintext into `out`, encrypted.
    pub(crate) fn send(&mut self, plaintext: &[u8], out: &mut Outbox) -> Result<(), TlsError> {
        plaintext.chunks(RECORD_BYTES_MAX).try_for_each(|chunk| {
            let most = chunk.len() + RECORD_OVERHEAD;
            self.write(out, most, |traffic, room| traffic.encrypt(chunk, room))
        })
    }

    /// Says that nothing more is sent.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
    pub(crate) fn close(&mut self, out: &mut Outbox) -> Result<(), TlsError> {
        self.write(out, RECORD_OVERHEAD, |traffic, room| traffic.queue_close_notify(room))
    }

    /// Brings the connection to where it can write, and lets `write` do so into room for `most` bytes.
    fn write(
        &mut self,
        out: &mut Outbox,
        most: usize,
        write: impl Fn(&mut WriteTraffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), TlsError> {
        if self.failed {
            return Err(TlsError(rustls::Error::HandshakeNotComplete));
        }
        // The library must see again what it has not consumed; no plaintext can be in it.
        let mut at = 0;
        let result = loop {
            let UnbufferedStatus { discard, state } =
                self.connection.process_tls_records(&mut self.carry[at..]);
            at += discard;
            match state {
                Err(error) => {
                    self.failed = true;
                    break Err(error.into());
                }
                Ok(ConnectionState::EncodeTlsData(data)) => out.encode(data),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let written = match write(&mut traffic, out.room(most)) {
                        Err(EncryptError::InsufficientSize(short)) => {
                            write(&mut traffic, out.room(short.required_size))
                        }
                        other => other,
                    };
                    out.used += *written.as_ref().unwrap_or(&0);
                    break written.map(|_| ()).map_err(|_| TlsError(rustls::Error::EncryptError));
                }
                Ok(_) => break Err(TlsError(rustls::Error::HandshakeNotComplete)),
            }
        };
        self.carry.drain(..at);
        result
    }
}

type WriteTraffic<'c> = rustls::unbuffered::WriteTraffic<'c, ClientConnectionData>;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use proptest::prelude::*;
    use rustls::{ServerConfig, ServerConnection};

    use super::*;
    use crate::config::Trust;

    /// Both ends of a connection, with nothing in between.
    struct Pair {
        client: ClientTls,
        server: Arc<ServerConfig>,
    }

    fn pair(version: &'static rustls::SupportedProtocolVersion) -> Pair {
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
        let client = TlsSetup::new(&trust, "localhost", &TlsOptions::default()).unwrap().client(1);
        Pair { client, server: Arc::new(server) }
    }

    /// What a client has received.
    #[derive(Default)]
    struct Received {
        plaintext: Vec<u8>,
        handshake: Option<Handshake>,
    }

    /// Lets the client take in the server's bytes in pieces of these sizes, and the server the answers to them.
    fn exchange(
        engine: &mut Engine,
        server: &mut ServerConnection,
        pieces: &mut impl Iterator<Item = usize>,
        corrupt: impl Fn(usize, &mut [u8]),
        received: &mut Received,
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
                take_in(engine, piece, &mut out, received)?;
                received.handshake = received.handshake.or_else(|| engine.new_handshake());
            }
        }
        Ok(())
    }

    /// Hands new bytes to the client behind those that it has kept.
    fn take_in(
        engine: &mut Engine,
        new: &[u8],
        out: &mut Outbox,
        received: &mut Received,
    ) -> Result<(), TlsError> {
        let mut buffer = vec![0; CARRY_BYTES_MAX + new.len()];
        let kept = engine.restore(&mut buffer);
        buffer[kept..kept + new.len()].copy_from_slice(new);
        engine.receive(&mut buffer[..kept + new.len()], out, |plaintext| {
            received.plaintext.extend_from_slice(plaintext);
        })
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
                let mut received = Received::default();
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
            let mut received = Received::default();
            let mut pieces = sizes.into_iter().cycle();
            let result = exchange(&mut engine, &mut server, &mut pieces, corrupt, &mut received);
            // Whatever has happened, what comes next must not panic either.
            let mut out = Outbox::default();
            let again = take_in(&mut engine, &[22, 3, 3, 0, 1, 0], &mut out, &mut received);
            prop_assert!(result.is_ok() || again.is_err());
            let _ = engine.send(b"x", &mut out);
            let _ = engine.close(&mut out);
            prop_assert!(received.plaintext.is_empty() || received.plaintext == b"hello");
        }
    }
}
