//! TLS without I/O, for one connection: ciphertext in, plaintext out, and back.

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError, WriteTraffic,
};
use rustls::{Error, HandshakeKind, PeerIncompatible};

use crate::io::buffer::Buffer;
use crate::tls::provider::take_key_count;
use crate::tls::server::config::TlsConfig;
use crate::tls::server::evidence::{HandshakeEvidence, HandshakeNotes};
use crate::tls::server::negotiated::NegotiatedTls;
use crate::tls::server::refusal::describe;

/// Ciphertext that the engine keeps because it is not a whole message yet, in bytes at most. A record has at most
/// 18 KiB; only a handshake message in many fragments needs more.
pub(crate) const PARTIAL_BYTES_MAX: usize = 64 << 10;

/// The largest overhead of a TLS record with the suites in use: header, explicit nonce, content type and tag.
const RECORD_OVERHEAD_BYTES: usize = 5 + 8 + 1 + 16;
/// Plaintext of a full record (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 << 10;
/// The client offers only older versions of TLS.
const TOO_OLD: EngineError = EngineError::Tls(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered));
/// A record with the fatal alert `protocol_version` (RFC 8446, 6.2).
const PROTOCOL_VERSION_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 70];
/// Room for a `close_notify` alert, or a `KeyUpdate` in front of data.
const CONTROL_BYTES: usize = 128;

/// Keys for reading that a client may set at once; a handshake sets two, a `KeyUpdate` (RFC 8446, 4.6.3) one. rustls ends a
/// connection after 32 `KeyUpdate` in a row, which a byte of data between them avoids.
const KEYS_MAX: u64 = 256;
/// Bytes in either direction that allow a client another key.
const BYTES_PER_KEY: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("{}", describe(.0))]
    Tls(#[from] Error),
    #[error("a handshake message in too many fragments")]
    TooFragmented,
    #[error("the client changes its keys too often ({KEYS_MAX} times, and once in {} KiB)", BYTES_PER_KEY >> 10)]
    TooManyKeys,
    #[error("too much was sent under one key")]
    KeyExhausted,
    #[error("the connection cannot be written to in its present state")]
    NotWritable,
    #[error("the connection has failed before")]
    Failed,
}

/// The server's end of one TLS connection.
pub(crate) struct Engine {
    /// Boxed, since it is large and the engine is moved before it has its place.
    connection: Box<UnbufferedServerConnection>,
    /// Ciphertext that is not a whole message yet. Its memory is kept while records come in pieces, as they do in
    /// a long upload, and freed once nothing is left over.
    partial: Vec<u8>,
    server_name: Option<Box<str>>,
    /// Until the handshake has been counted.
    evidence: Option<Box<HandshakeEvidence>>,
    /// Keys for reading that were set.
    keys: u64,
    /// Bytes received and sent.
    bytes: u64,
    peer_closed: bool,
    /// After a failure rustls must not be asked again.
    has_failed: bool,
    /// Whether any byte was produced for the peer, which only happens after it sent a valid `ClientHello`.
    has_answered: bool,
}

impl Engine {
    pub(crate) fn new(config: &TlsConfig) -> Result<Self, EngineError> {
        Ok(Self {
            connection: Box::new(config.connection()?),
            partial: Vec::new(),
            server_name: None,
            evidence: Some(Box::new(HandshakeEvidence::new(config.policy()))),
            keys: 0,
            bytes: 0,
            peer_closed: false,
            has_failed: false,
            has_answered: false,
        })
    }

    /// Bytes that [`Engine::receive`] needs free at the front of its buffer.
    pub(crate) fn partial_len(&self) -> usize {
        self.partial.len()
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// True once the peer has sent its `close_notify`; all earlier plaintext has been returned.
    pub(crate) fn is_peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// True once the peer has shown that it speaks TLS.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered
    }

    pub(crate) fn session(&self) -> NegotiatedTls<'_> {
        NegotiatedTls::new(&self.connection, self.server_name.as_deref(), self.evidence.as_deref())
    }

    /// Drops data that was needed only until the handshake was counted.
    pub(crate) fn forget_handshake(&mut self) {
        self.evidence = None;
    }

    /// Processes received bytes: `buffer` holds them behind [`Engine::partial_len`] free bytes, and is decrypted in
    /// place. Plaintext is appended to `plaintext`, bytes for the peer to `output`. If this fails, `output` gets the
    /// alert.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        plaintext: &mut Buffer,
        output: &mut Buffer,
    ) -> Result<(), EngineError> {
        if self.has_failed {
            return Err(EngineError::Failed);
        }
        buffer[..self.partial.len()].copy_from_slice(&self.partial);
        if let Some(evidence) = &mut self.evidence
            && let Some(name) = evidence.read(&buffer[self.partial.len()..])
        {
            self.server_name = Some(name);
        }
        let used = self.process(buffer, plaintext, output)?;
        self.bytes += used as u64;
        // RFC 8446, 6.1: bytes after a close_notify are ignored.
        let rest = if self.peer_closed { &[] } else { &buffer[used..] };
        if rest.len() > PARTIAL_BYTES_MAX {
            return Err(EngineError::TooFragmented);
        }
        if rest.is_empty() {
            self.partial = Vec::new();
        } else {
            self.partial.clear();
            self.partial.extend_from_slice(rest);
        }
        Ok(())
    }

    /// Returns how much of `buffer` is done with.
    #[inline]
    fn process(
        &mut self,
        buffer: &mut [u8],
        plaintext: &mut Buffer,
        output: &mut Buffer,
    ) -> Result<usize, EngineError> {
        let before = output.len();
        let is_noted = self.is_handshaking();
        if is_noted {
            let is_resumed = self.connection.handshake_kind() == Some(HandshakeKind::Resumed);
            let offered = self.evidence.as_ref().and_then(|evidence| evidence.offered());
            HandshakeNotes::begin(self.server_name.take(), offered.filter(|_| is_resumed));
        }
        let result =
            self.process_until_blocked(buffer, plaintext, output).map_err(|error| self.name_version(error));
        if is_noted {
            self.take_notes();
        }
        if result.is_ok() {
            self.has_answered |= output.len() > before;
        } else {
            self.has_failed = true;
            if result == Err(TOO_OLD) {
                output.extend(&PROTOCOL_VERSION_ALERT);
            } else {
                self.append_alert(output)?;
            }
        }
        result
    }

    /// rustls looks for signature algorithms first, which TLS 1.1 and older do not have.
    fn name_version(&self, error: EngineError) -> EngineError {
        let without_algorithms = Error::from(PeerIncompatible::SignatureAlgorithmsExtensionRequired);
        let is_old = self.evidence.as_ref().is_some_and(|evidence| evidence.is_without_version());
        if is_old && error == EngineError::Tls(without_algorithms) { TOO_OLD } else { error }
    }

    /// Takes the notes of rustls' callbacks.
    fn take_notes(&mut self) {
        let mut notes = HandshakeNotes::take();
        self.server_name = notes.server_name.take();
        if let Some(evidence) = &mut self.evidence {
            evidence.add(notes);
        }
    }

    #[inline]
    fn process_until_blocked(
        &mut self,
        buffer: &mut [u8],
        plaintext: &mut Buffer,
        output: &mut Buffer,
    ) -> Result<usize, EngineError> {
        let mut used = 0;
        loop {
            let status = self.connection.process_tls_records(&mut buffer[used..]);
            self.keys += u64::from(take_key_count());
            if self.keys > KEYS_MAX + self.bytes / BYTES_PER_KEY {
                return Err(EngineError::TooManyKeys);
            }
            let mut discard = status.discard;
            match status.state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        plaintext.extend(record.payload);
                    }
                    // Before a record rustls returns its queued messages, so nothing waits behind the last one.
                    if used + discard == buffer.len() {
                        return Ok(used + discard);
                    }
                }
                ConnectionState::EncodeTlsData(data) => encode(data, output)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.peer_closed = true,
                // All complete records have been processed: in any state, it waits for more from the peer.
                _ => return Ok(used + discard),
            }
            used += discard;
        }
    }

    /// Appends the alert for a failure. No further input may be processed.
    fn append_alert(&mut self, output: &mut Buffer) -> Result<(), EngineError> {
        while self.connection.wants_write() {
            if let ConnectionState::EncodeTlsData(data) = self.connection.process_tls_records(&mut []).state?
            {
                encode(data, output)?;
            }
        }
        Ok(())
    }

    /// Encrypts all of `plaintext` after the present content of `output`.
    pub(crate) fn encrypt(&mut self, plaintext: &[u8], output: &mut Buffer) -> Result<(), EngineError> {
        self.bytes += plaintext.len() as u64;
        self.write(EncryptInput::Plaintext(plaintext), output)
    }

    /// Appends the alert that announces the end of the stream.
    pub(crate) fn close_notify(&mut self, output: &mut Buffer) -> Result<(), EngineError> {
        self.write(EncryptInput::CloseNotify, output)
    }

    fn write(&mut self, outgoing: EncryptInput<'_>, output: &mut Buffer) -> Result<(), EngineError> {
        if self.has_failed {
            return Err(EngineError::Failed);
        }
        let mut room = outgoing.room();
        loop {
            // rustls remembers its place in the bytes that are kept, so they are passed again.
            let status = self.connection.process_tls_records(&mut self.partial);
            let discard = status.discard;
            let mut done = false;
            match status.state? {
                ConnectionState::WriteTraffic(traffic) => {
                    match outgoing.encrypt(traffic, output.room(room)) {
                        Ok(n) => {
                            output.commit(n);
                            done = true;
                        }
                        Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size })) => {
                            room = required_size;
                        }
                        Err(EncryptError::EncryptExhausted) => return Err(EngineError::KeyExhausted),
                    }
                }
                ConnectionState::EncodeTlsData(data) => encode(data, output)?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.peer_closed = true,
                _ => return Err(EngineError::NotWritable),
            }
            self.partial.drain(..discard);
            if done {
                return Ok(());
            }
        }
    }
}

#[derive(Clone, Copy)]
enum EncryptInput<'a> {
    Plaintext(&'a [u8]),
    CloseNotify,
}

impl EncryptInput<'_> {
    /// The most space that it needs, except for messages that rustls has queued before it.
    fn room(self) -> usize {
        let plaintext = match self {
            Self::Plaintext(bytes) => bytes.len(),
            Self::CloseNotify => 0,
        };
        plaintext + plaintext.div_ceil(RECORD_BYTES) * RECORD_OVERHEAD_BYTES + CONTROL_BYTES
    }

    fn encrypt<Data>(
        self,
        mut traffic: WriteTraffic<'_, Data>,
        space: &mut [u8],
    ) -> Result<usize, EncryptError> {
        match self {
            Self::Plaintext(bytes) => traffic.encrypt(bytes, space),
            Self::CloseNotify => traffic.queue_close_notify(space),
        }
    }
}

fn encode<Data>(mut data: EncodeTlsData<'_, Data>, output: &mut Buffer) -> Result<(), EngineError> {
    let mut room = CONTROL_BYTES;
    loop {
        match data.encode(output.room(room)) {
            Ok(n) => {
                output.commit(n);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                room = required_size;
            }
            Err(EncodeError::AlreadyEncoded) => return Err(EngineError::NotWritable),
        }
    }
}

#[cfg(test)]
mod tests;
