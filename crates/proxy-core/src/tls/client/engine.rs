//! TLS of the client's end of a connection, without I/O.

use rustls::HandshakeKind;
use rustls::ProtocolVersion;
use rustls::client::UnbufferedClientConnection;

use crate::io::buffer::Buffer;
use crate::tls::engine::{EngineError, RecordEngine};

/// The client's end of one TLS connection. The first [`ClientEngine::receive`], of nothing, makes the `ClientHello`.
pub(crate) struct ClientEngine {
    records: RecordEngine<UnbufferedClientConnection>,
    has_offered: bool,
}

impl ClientEngine {
    pub(in crate::tls) fn new(connection: UnbufferedClientConnection, has_offered: bool) -> Self {
        Self { records: RecordEngine::new(connection), has_offered }
    }

    /// Bytes that [`ClientEngine::receive`] needs free at the front of its buffer.
    pub(crate) fn partial_len(&self) -> usize {
        self.records.partial_len()
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.records.is_handshaking()
    }

    /// True once the peer has sent its `close_notify`; all earlier plaintext has been returned.
    pub(crate) fn is_peer_closed(&self) -> bool {
        self.records.is_peer_closed()
    }

    /// Whether a session of the upstream was at hand. rustls offers none that has expired.
    pub(crate) fn has_offered(&self) -> bool {
        self.has_offered
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.records.connection().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    pub(crate) fn is_tls13(&self) -> bool {
        self.records.connection().protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// The protocol that ALPN has agreed on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.records.connection().alpn_protocol()
    }

    /// Processes received bytes: `buffer` holds them behind [`ClientEngine::partial_len`] free bytes, and is decrypted in
    /// place. Plaintext goes to `plaintext`, bytes for the peer are appended to `output`, also the alert if this fails.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        plaintext: impl FnMut(&[u8]),
        output: &mut Buffer,
    ) -> Result<(), EngineError> {
        if self.records.has_failed() {
            return Err(EngineError::Failed);
        }
        self.records.receive(buffer, plaintext, output).or_else(|error| {
            self.records.append_alert(output)?;
            Err(error)
        })
    }

    /// Encrypts all of `plaintext` after the present content of `output`.
    pub(crate) fn encrypt(&mut self, plaintext: &[u8], output: &mut Buffer) -> Result<(), EngineError> {
        self.records.encrypt(plaintext, output)
    }

    /// Appends the alert that announces the end of the stream.
    pub(crate) fn close_notify(&mut self, output: &mut Buffer) -> Result<(), EngineError> {
        self.records.close_notify(output)
    }
}
