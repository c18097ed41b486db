//! TLS over rustls' unbuffered interface: it works in shared buffers, so an idle connection owns none.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus};
use rustls_pki_types::ServerName;

use super::{Handshake, Outbox, TlsError};

/// Most plaintext that goes into one record.
const RECORD_BYTES_MAX: usize = 16 * 1024;
/// Initial room for a record, or a flight of the handshake, beyond its plaintext; it grows if necessary.
const RECORD_OVERHEAD: usize = 512;
/// Largest incomplete record, or handshake message in several records, that is kept for the next read.
pub(super) const CARRY_BYTES_MAX: usize = 80 * 1024;

pub(crate) struct UnbufferedTls {
    connection: UnbufferedClientConnection,
    /// Ciphertext that does not make a whole record, or message, yet.
    carry: Vec<u8>,
    handshake_told: bool,
    peer_closed: bool,
    /// There was an error, and nothing more can be done with the connection.
    failed: bool,
}

impl fmt::Debug for UnbufferedTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unbuffered").field("peer_closed", &self.peer_closed).finish_non_exhaustive()
    }
}

impl UnbufferedTls {
    pub(super) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, TlsError> {
        Ok(Self {
            connection: UnbufferedClientConnection::new(config, name)?,
            carry: Vec::new(),
            handshake_told: false,
            peer_closed: false,
            failed: false,
        })
    }

    /// Copies the bytes kept from the last read to the front of `buffer`, and returns their number. The next read goes
    /// behind them, and both go to [`Self::receive`] together.
    pub(super) fn restore(&self, buffer: &mut [u8]) -> usize {
        buffer[..self.carry.len()].copy_from_slice(&self.carry);
        self.carry.len()
    }

    /// Processes ciphertext, passes on its plaintext, and writes TLS's own messages to `out`.
    pub(super) fn receive(
        &mut self,
        ciphertext: &mut [u8],
        out: &mut Outbox,
        mut plaintext: impl FnMut(&[u8]),
    ) -> Result<(), TlsError> {
        if self.failed {
            return Err(TlsError(rustls::Error::HandshakeNotComplete));
        }
        // The library keeps offsets into its last input, and panics if that input is missing.
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
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                // All complete records have been processed; the rest waits for more.
                Ok(_) => is_drained = true,
            }
            at += discard;
            if is_drained {
                return self.keep(&ciphertext[at..]);
            }
        }
    }

    /// Keeps an incomplete record.
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

    /// Puts the alert about an error into `out`. The library gets the same input again, and does not read it while it
    /// has something to send. After that it must not be called again, or it panics.
    fn fail(&mut self, input: &mut [u8], out: &mut Outbox) {
        self.failed = true;
        while self.connection.wants_write()
            && let Ok(ConnectionState::EncodeTlsData(data)) = self.connection.process_tls_records(input).state
        {
            encode(data, out);
        }
    }

    /// The handshake, once, when it has been completed.
    pub(super) fn new_handshake(&mut self) -> Option<Handshake> {
        if self.handshake_told || self.connection.is_handshaking() {
            return None;
        }
        let handshake = Handshake::of(&self.connection)?;
        self.handshake_told = true;
        Some(handshake)
    }

    /// True once the server has said that it sends no more.
    pub(super) fn peer_has_closed(&self) -> bool {
        self.peer_closed
    }

    /// Puts plaintext into `out`, encrypted.
    pub(super) fn send(&mut self, plaintext: &[u8], out: &mut Outbox) -> Result<(), TlsError> {
        plaintext.chunks(RECORD_BYTES_MAX).try_for_each(|chunk| {
            let most = chunk.len() + RECORD_OVERHEAD;
            self.write(out, most, |traffic, room| traffic.encrypt(chunk, room))
        })
    }

    /// Puts a `close_notify` into `out`.
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method alone is not general enough")]
    pub(super) fn close(&mut self, out: &mut Outbox) -> Result<(), TlsError> {
        self.write(out, RECORD_OVERHEAD, |traffic, room| traffic.queue_close_notify(room))
    }

    /// Advances the connection until it can write, and lets `write` write into room for `most` bytes.
    fn write(
        &mut self,
        out: &mut Outbox,
        most: usize,
        write: impl Fn(&mut WriteTraffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<(), TlsError> {
        if self.failed {
            return Err(TlsError(rustls::Error::HandshakeNotComplete));
        }
        // The library must see the bytes again that it has not consumed; they contain no plaintext.
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
                Ok(ConnectionState::EncodeTlsData(data)) => encode(data, out),
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::PeerClosed) => self.peer_closed = true,
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    let written = match write(&mut traffic, out.room(most)) {
                        Err(EncryptError::InsufficientSize(short)) => {
                            write(&mut traffic, out.room(short.required_size))
                        }
                        other => other,
                    };
                    out.take(*written.as_ref().unwrap_or(&0));
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

/// Adds the library's own messages: a flight of the handshake, an alert, a key update.
fn encode(mut data: EncodeTlsData<'_, ClientConnectionData>, out: &mut Outbox) {
    let encoded = match data.encode(out.room(RECORD_OVERHEAD)) {
        Err(EncodeError::InsufficientSize(short)) => data.encode(out.room(short.required_size)),
        other => other,
    };
    out.take(encoded.expect("there is room for it, and it is encoded once"));
}
