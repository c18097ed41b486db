//! TLS with early data, whose acceptance the unbuffered interface of rustls does not report.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use super::{Handshake, Outbox, TlsError};

/// Plaintext passed on at a time, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

/// One connection's TLS, with its own buffers.
#[derive(Debug)]
pub(crate) struct EarlyDataTls {
    connection: ClientConnection,
    /// Early data was sent. A server may also accept early data that is empty.
    was_tried: bool,
    handshake_told: bool,
    peer_closed: bool,
}

impl EarlyDataTls {
    pub(super) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, TlsError> {
        let mut connection = ClientConnection::new(config, name)?;
        // The caller limits the bytes that it sends, and flushes them at once.
        connection.set_buffer_limit(None);
        Ok(Self { connection, was_tried: false, handshake_told: false, peer_closed: false })
    }

    /// Sends all or nothing: the server would decide when the rest of a request could follow.
    pub(super) fn send_early(&mut self, plaintext: &[u8]) -> bool {
        let Some(mut early) = self.connection.early_data() else { return false };
        self.was_tried = early.bytes_left() >= plaintext.len() && early.write_all(plaintext).is_ok();
        self.was_tried
    }

    pub(super) fn receive(
        &mut self,
        ciphertext: &[u8],
        out: &mut Outbox,
        mut plaintext: impl FnMut(&[u8]),
    ) -> Result<(), TlsError> {
        let mut rest = ciphertext;
        let mut piece = [0; PIECE_BYTES];
        while !rest.is_empty() && !self.peer_closed {
            // rustls takes as much as it has room for, and nothing after a fatal error.
            if !matches!(self.connection.read_tls(&mut rest), Ok(1..)) {
                return Err(TlsError(rustls::Error::HandshakeNotComplete));
            }
            let state = match self.connection.process_new_packets() {
                Ok(state) => state,
                Err(error) => {
                    // The alert about it.
                    self.flush(out);
                    return Err(error.into());
                }
            };
            self.peer_closed = state.peer_has_closed();
            loop {
                match self.connection.reader().read(&mut piece) {
                    Ok(len @ 1..) => plaintext(&piece[..len]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(0) | Err(_) => break,
                }
            }
        }
        self.flush(out);
        Ok(())
    }

    pub(super) fn new_handshake(&mut self) -> Option<Handshake> {
        if self.handshake_told || self.connection.is_handshaking() {
            return None;
        }
        let early = self.was_tried && self.connection.is_early_data_accepted();
        let handshake = Handshake { early, ..Handshake::of(&self.connection)? };
        self.handshake_told = true;
        Some(handshake)
    }

    pub(super) fn peer_has_closed(&self) -> bool {
        self.peer_closed
    }

    pub(super) fn send(&mut self, plaintext: &[u8], out: &mut Outbox) -> Result<(), TlsError> {
        let written = self.connection.writer().write_all(plaintext);
        written.map_err(|_| TlsError(rustls::Error::EncryptError))?;
        self.flush(out);
        Ok(())
    }

    pub(super) fn close(&mut self, out: &mut Outbox) {
        self.connection.send_close_notify();
        self.flush(out);
    }

    fn flush(&mut self, out: &mut Outbox) {
        while self.connection.wants_write() && matches!(self.connection.write_tls(out), Ok(1..)) {}
    }
}
