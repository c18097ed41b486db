//! TLS of the server's end of a connection, without I/O.

use rustls::server::UnbufferedServerConnection;
use rustls::{Error, HandshakeKind, PeerIncompatible};

use crate::io::buffer::Buffer;
use crate::tls::engine::{EngineError, RecordEngine};
use crate::tls::server::config::TlsConfig;
use crate::tls::server::evidence::{HandshakeEvidence, HandshakeNotes};
use crate::tls::server::negotiated::NegotiatedTls;

/// The client offers only older versions of TLS.
const TOO_OLD: EngineError = EngineError::Tls(Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered));
/// A record with the fatal alert `protocol_version` (RFC 8446, 6.2).
const PROTOCOL_VERSION_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 70];
/// A record with the fatal alert `unrecognized_name` (RFC 6066, 3), for which rustls has none.
const UNRECOGNIZED_NAME_ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// The server's end of one TLS connection.
pub(crate) struct Engine {
    records: RecordEngine<UnbufferedServerConnection>,
    server_name: Option<Box<str>>,
    /// Until the handshake has been counted.
    evidence: Option<Box<HandshakeEvidence>>,
    /// Whether any byte was produced for the peer, which only happens after it sent a valid `ClientHello`.
    has_answered: bool,
    /// Whether clients need certificates for some server names.
    is_by_name: bool,
}

impl Engine {
    pub(crate) fn new(config: &TlsConfig) -> Result<Self, EngineError> {
        Ok(Self {
            records: RecordEngine::new(config.connection()?),
            server_name: None,
            evidence: Some(Box::new(HandshakeEvidence::new(config.policy()))),
            has_answered: false,
            is_by_name: config.policy().is_by_name,
        })
    }

    /// Bytes that [`Engine::receive`] needs free at the front of its buffer.
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

    /// True once the peer has shown that it speaks TLS.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered
    }

    /// Whether the client may ask for the host of its server name only: what it has proved, or need not prove, holds for
    /// that name.
    pub(crate) fn is_bound_to_name(&self) -> bool {
        self.is_by_name || self.session().has_client_certificate()
    }

    pub(crate) fn session(&self) -> NegotiatedTls<'_> {
        NegotiatedTls::new(self.records.connection(), self.server_name.as_deref(), self.evidence.as_deref())
    }

    /// Drops data that was needed only until the handshake was counted.
    pub(crate) fn forget_handshake(&mut self) {
        self.evidence = None;
    }

    /// Processes received bytes: `buffer` holds them behind [`Engine::partial_len`] free bytes, and is decrypted in
    /// place. Plaintext is appended to `plaintext`, bytes for the peer to `output`. If this fails, `output` gets the
    /// alert.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        plaintext: &mut Buffer,
        output: &mut Buffer,
    ) -> Result<(), EngineError> {
        if self.records.has_failed() {
            return Err(EngineError::Failed);
        }
        if let Some(evidence) = &mut self.evidence
            && let Some(name) = evidence.read(&buffer[self.records.partial_len()..])
        {
            self.server_name = Some(name);
        }
        let before = output.len();
        let is_noted = self.is_handshaking();
        if is_noted {
            let is_resumed = self.records.connection().handshake_kind() == Some(HandshakeKind::Resumed);
            let offered = self.evidence.as_ref().and_then(|evidence| evidence.offered());
            HandshakeNotes::begin(self.server_name.take(), offered.filter(|_| is_resumed));
        }
        let mut result = self.records.receive(buffer, |bytes| plaintext.extend(bytes), output);
        if is_noted && self.take_notes() {
            result = Err(EngineError::UnrecognizedName);
        }
        match result {
            Ok(()) => {
                self.has_answered |= output.len() > before;
                Ok(())
            }
            Err(error) => self.refuse(error, output),
        }
    }

    /// Tells the peer why it is refused.
    #[cold]
    fn refuse(&mut self, error: EngineError, output: &mut Buffer) -> Result<(), EngineError> {
        self.records.fail();
        let error = self.name_version(error);
        match error {
            EngineError::UnrecognizedName => output.extend(&UNRECOGNIZED_NAME_ALERT),
            ref error if *error == TOO_OLD => output.extend(&PROTOCOL_VERSION_ALERT),
            _ => self.records.append_alert(output)?,
        }
        Err(error)
    }

    /// rustls looks for signature algorithms first, which TLS 1.1 and older do not have.
    fn name_version(&self, error: EngineError) -> EngineError {
        let without_algorithms = Error::from(PeerIncompatible::SignatureAlgorithmsExtensionRequired);
        let is_old = self.evidence.as_ref().is_some_and(|evidence| evidence.is_without_version());
        if is_old && error == EngineError::Tls(without_algorithms) { TOO_OLD } else { error }
    }

    /// Takes the notes of rustls' callbacks. True if they refused the server name.
    fn take_notes(&mut self) -> bool {
        let mut notes = HandshakeNotes::take();
        self.server_name = notes.server_name.take();
        let is_name_refused = notes.is_name_refused;
        if let Some(evidence) = &mut self.evidence {
            evidence.add(notes);
        }
        is_name_refused
    }

    /// Encrypts all of `plaintext` after the present content of `output`.
    #[inline]
    pub(crate) fn encrypt(&mut self, plaintext: &[u8], output: &mut Buffer) -> Result<(), EngineError> {
        self.records.encrypt(plaintext, output)
    }

    /// Appends the alert that announces the end of the stream.
    pub(crate) fn close_notify(&mut self, output: &mut Buffer) -> Result<(), EngineError> {
        self.records.close_notify(output)
    }
}

#[cfg(test)]
mod tests;
