//! TLS as an engine without I/O: ciphertext in and plaintext out, and back. Nothing outside of this module names
//! the TLS library.

mod sessions;
mod setup;

use std::fmt;
use std::sync::Arc;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus};
use rustls::{ClientConfig, HandshakeKind};
use rustls_pki_types::ServerName;

use sessions::Sessions;
pub(crate) use setup::TlsSetup;

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

/// A completed handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub(crate) resumed: bool,
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
        let kind = self.connection.handshake_kind()?;
        self.handshake_told = true;
        Some(Handshake { resumed: kind == HandshakeKind::Resumed })
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
