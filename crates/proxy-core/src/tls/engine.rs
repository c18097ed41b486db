//! TLS without I/O, for one end of one connection: ciphertext in, plaintext out, and back.

use std::ops::DerefMut;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedConnectionCommon, UnbufferedStatus, WriteTraffic,
};
use rustls::{CommonState, Error};

use crate::io::buffer::Buffer;
use crate::tls::provider::take_key_count;
use crate::tls::server::refusal::describe;

/// Ciphertext that the engine keeps because it is not a whole message yet, in bytes at most. A record has at most
/// 18 KiB; only a handshake message in many fragments needs more.
pub(crate) const PARTIAL_BYTES_MAX: usize = 64 << 10;

/// The largest overhead of a TLS record with the suites in use: header, explicit nonce, content type and tag.
const RECORD_OVERHEAD_BYTES: usize = 5 + 8 + 1 + 16;
/// Plaintext of a full record (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 << 10;
/// Room for a `close_notify` alert, or a `KeyUpdate` in front of data.
const CONTROL_BYTES: usize = 128;

/// Keys for reading that a peer may set at once; a handshake sets two, a `KeyUpdate` (RFC 8446, 4.6.3) one. rustls ends a
/// connection after 32 `KeyUpdate` in a row, which a byte of data between them avoids.
const KEYS_MAX: u64 = 256;
/// Bytes in either direction that allow a peer another key.
const BYTES_PER_KEY: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum EngineError {
    #[error("{}", describe(.0))]
    Tls(#[from] Error),
    #[error("a handshake message in too many fragments")]
    TooFragmented,
    #[error("the peer changes its keys too often ({KEYS_MAX} times, and once in {} KiB)", BYTES_PER_KEY >> 10)]
    TooManyKeys,
    #[error("the client asks for no server name that is served here")]
    UnrecognizedName,
    #[error("it does not agree on HTTP/2")]
    NotHttp2,
    #[error("too much was sent under one key")]
    KeyExhausted,
    #[error("the connection cannot be written to in its present state")]
    NotWritable,
    #[error("the connection has failed before")]
    Failed,
}

/// A connection of rustls, as server or as client: both have the same functions, and no trait for them.
pub(in crate::tls) trait TlsConnection:
    DerefMut<Target = UnbufferedConnectionCommon<Self::Data>>
{
    type Data;

    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl TlsConnection for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    #[inline]
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

impl TlsConnection for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    #[inline]
    fn process<'c, 'i>(&'c mut self, incoming: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(incoming)
    }
}

/// One end of a TLS connection.
pub(in crate::tls) struct RecordEngine<C> {
    /// Boxed, since it is large and the engine is moved before it has its place.
    connection: Box<C>,
    /// Ciphertext that is not a whole message yet. Its memory is kept while records come in pieces, as they do in
    /// a long upload, and freed once nothing is left over.
    pub(in crate::tls) partial: Vec<u8>,
    /// Keys for reading that were set.
    keys: u64,
    /// Bytes received and sent.
    bytes: u64,
    peer_closed: bool,
    /// After a failure rustls must not be asked again.
    has_failed: bool,
}

impl<C: TlsConnection> RecordEngine<C> {
    pub(in crate::tls) fn new(connection: C) -> Self {
        Self {
            connection: Box::new(connection),
            partial: Vec::new(),
            keys: 0,
            bytes: 0,
            peer_closed: false,
            has_failed: false,
        }
    }

    /// What has been negotiated.
    pub(in crate::tls) fn connection(&self) -> &CommonState {
        &self.connection
    }

    /// Bytes that [`RecordEngine::receive`] needs free at the front of its buffer.
    pub(in crate::tls) fn partial_len(&self) -> usize {
        self.partial.len()
    }

    pub(in crate::tls) fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// True once the peer has sent its `close_notify`; all earlier plaintext has been returned.
    pub(in crate::tls) fn is_peer_closed(&self) -> bool {
        self.peer_closed
    }

    pub(in crate::tls) fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Nothing more may be received or sent.
    pub(in crate::tls) fn fail(&mut self) {
        self.has_failed = true;
    }

    /// Processes received bytes: `buffer` holds them behind [`RecordEngine::partial_len`] free bytes, and is decrypted in
    /// place. Plaintext goes to `plaintext`, bytes for the peer are appended to `output`. After a failure
    /// [`RecordEngine::append_alert`] tells the peer.
    #[inline]
    pub(in crate::tls) fn receive(
        &mut self,
        buffer: &mut [u8],
        plaintext: impl FnMut(&[u8]),
        output: &mut Buffer,
    ) -> Result<(), EngineError> {
        buffer[..self.partial.len()].copy_from_slice(&self.partial);
        let result = self.process_until_blocked(buffer, plaintext, output);
        self.has_failed |= result.is_err();
        let used = result?;
        self.bytes += used as u64;
        // RFC 8446, 6.1: bytes after a close_notify are ignored.
        let rest = if self.peer_closed { &[] } else { &buffer[used..] };
        if rest.len() > PARTIAL_BYTES_MAX {
            self.has_failed = true;
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
    fn process_until_blocked(
        &mut self,
        buffer: &mut [u8],
        mut plaintext: impl FnMut(&[u8]),
        output: &mut Buffer,
    ) -> Result<usize, EngineError> {
        let mut used = 0;
        loop {
            let status = self.connection.process(&mut buffer[used..]);
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
                        plaintext(record.payload);
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
    pub(in crate::tls) fn append_alert(&mut self, output: &mut Buffer) -> Result<(), EngineError> {
        while self.connection.wants_write() {
            if let ConnectionState::EncodeTlsData(data) = self.connection.process(&mut []).state? {
                encode(data, output)?;
            }
        }
        Ok(())
    }

    /// Encrypts all of `plaintext` after the present content of `output`.
    #[inline]
    pub(in crate::tls) fn encrypt(
        &mut self,
        plaintext: &[u8],
        output: &mut Buffer,
    ) -> Result<(), EngineError> {
        self.bytes += plaintext.len() as u64;
        self.write(EncryptInput::Plaintext(plaintext), output)
    }

    /// Appends the alert that announces the end of the stream.
    pub(in crate::tls) fn close_notify(&mut self, output: &mut Buffer) -> Result<(), EngineError> {
        self.write(EncryptInput::CloseNotify, output)
    }

    fn write(&mut self, outgoing: EncryptInput<'_>, output: &mut Buffer) -> Result<(), EngineError> {
        if self.has_failed {
            return Err(EngineError::Failed);
        }
        let mut room = outgoing.room();
        loop {
            // rustls remembers its place in the bytes that are kept, so they are passed again.
            let status = self.connection.process(&mut self.partial);
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
