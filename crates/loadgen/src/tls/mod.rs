//! TLS as an engine without I/O: ciphertext in and plaintext out, and back. Nothing outside of this module names
//! the TLS library.

mod early;
mod outbox;
mod server_certificates;
mod setup;
mod unbuffered;

use std::sync::Arc;

use records::values::LoadEvent;
use rustls::crypto::SupportedKxGroup;
use rustls::{CipherSuite, ClientConfig, CommonState, HandshakeKind, NamedGroup, ProtocolVersion};
use rustls_pki_types::ServerName;

use early::EarlyDataTls;
pub(crate) use outbox::Outbox;
pub use server_certificates::{FetchCertificatesError, fetch_certificates};
pub(crate) use setup::TlsSetup;
pub use setup::{
    Alpn, Identity, TlsOptions, TlsSetupError, ciphers_from, groups_from, knows_cipher, knows_group,
};
pub(crate) use tls_client::SessionReset;
pub use tls_client::{KnownCertificates, Trust, TrustError};
use tls_client::{SessionStore, TrustFlags};
use unbuffered::UnbufferedTls;

/// The flags that advice about a refused server names.
const TRUST_FLAGS: TrustFlags =
    TrustFlags { authorities: "--ca FILE", name: "--sni NAME", insecure: "--insecure" };

/// Why a server is refused, in words.
fn refusal_reason(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS on this port, where plain HTTP may be: http://".to_owned()
        }
        other => tls_client::reason(other),
    }
}

/// TLS of one client: configuration and sessions.
#[derive(Debug)]
pub(crate) struct ClientTls {
    config: Arc<ClientConfig>,
    sessions: Arc<SessionStore>,
    name: ServerName<'static>,
}

/// An error in TLS that ends the connection.
#[derive(Debug, thiserror::Error)]
#[error("{}", refusal_reason(.0))]
pub(crate) struct TlsError(#[from] rustls::Error);

impl TlsError {
    /// The event that it counts as.
    pub(crate) fn event(&self) -> LoadEvent {
        use rustls::Error as E;
        match &self.0 {
            E::AlertReceived(alert) => LoadEvent::AlertReceived(u8::from(*alert)),
            E::InvalidCertificate(_) | E::NoCertificatesPresented | E::UnsupportedNameType => {
                LoadEvent::Certificate
            }
            _ => LoadEvent::Tls,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub(crate) resumed: bool,
    /// The server has taken the early data.
    pub(crate) early: bool,
    version: ProtocolVersion,
    suite: CipherSuite,
    group: Option<NamedGroup>,
    pub(crate) alpn: Option<Alpn>,
}

impl Handshake {
    /// The negotiated parameters; `None` before the handshake is complete.
    fn of(connection: &CommonState) -> Option<Self> {
        Some(Self {
            resumed: connection.handshake_kind()? == HandshakeKind::Resumed,
            early: false,
            version: connection.protocol_version()?,
            suite: connection.negotiated_cipher_suite()?.suite(),
            group: connection.negotiated_key_exchange_group().map(SupportedKxGroup::name),
            alpn: connection.alpn_protocol().and_then(Alpn::known),
        })
    }

    /// The negotiated parameters, as an event.
    pub(crate) fn event(&self) -> LoadEvent {
        let group = self.group.map_or(0, u16::from);
        LoadEvent::Negotiated(u16::from(self.version), u16::from(self.suite), group)
    }

    pub(crate) fn describe(&self, omits_alpn: bool) -> String {
        let version = match self.version {
            ProtocolVersion::TLSv1_2 => "TLSv1.2",
            ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "TLS",
        };
        let suite = hello::suite_name(self.suite.into());
        let group = self.group.map_or_else(|| "no group".into(), |group| hello::group_name(group.into()));
        let alpn = format!(", ALPN {}", self.alpn.map_or("none", Alpn::name));
        format!("{version} {suite} {group}{}", if omits_alpn { "" } else { &*alpn })
    }
}

#[derive(Debug)]
pub(crate) enum TlsEngine {
    /// The default: without its own buffers.
    Unbuffered(UnbufferedTls),
    /// Can send early data, and reports whether the server accepted it.
    Early(EarlyDataTls),
}

impl ClientTls {
    /// Begins a connection; the first [`TlsEngine::receive`] produces the first flight. Also returns whether a session is
    /// offered for resumption: only if `wanted` and available.
    pub(crate) fn begin(&self, wanted: bool) -> Result<(TlsEngine, bool), TlsError> {
        self.sessions.allow(wanted);
        let (config, name) = (Arc::clone(&self.config), self.name.clone());
        let engine = if config.enable_early_data {
            TlsEngine::Early(EarlyDataTls::new(config, name)?)
        } else {
            TlsEngine::Unbuffered(UnbufferedTls::new(config, name)?)
        };
        Ok((engine, self.sessions.was_offered()))
    }
}

impl TlsEngine {
    /// Sends the whole of `plaintext` as early data, together with the first flight (RFC 8446, section 2.3), if the
    /// session that is offered allows that; true if it did.
    pub(crate) fn send_early(&mut self, plaintext: &[u8]) -> bool {
        match self {
            Self::Unbuffered(_) => false,
            Self::Early(early) => early.send_early(plaintext),
        }
    }

    /// Copies the bytes kept from the last read to the front of `buffer`, and returns their number. The next read goes
    /// behind them, and both go to [`TlsEngine::receive`] together.
    pub(crate) fn restore(&self, buffer: &mut [u8]) -> usize {
        match self {
            Self::Unbuffered(unbuffered) => unbuffered.restore(buffer),
            // rustls keeps it.
            Self::Early(_) => 0,
        }
    }

    /// Decrypts ciphertext, passes the plaintext on, and puts TLS's own messages into `out`.
    pub(crate) fn receive(
        &mut self,
        ciphertext: &mut [u8],
        out: &mut Outbox,
        plaintext: impl FnMut(&[u8]),
    ) -> Result<(), TlsError> {
        match self {
            Self::Unbuffered(unbuffered) => unbuffered.receive(ciphertext, out, plaintext),
            Self::Early(early) => early.receive(ciphertext, out, plaintext),
        }
    }

    /// The handshake, once, when it has been completed.
    pub(crate) fn new_handshake(&mut self) -> Option<Handshake> {
        match self {
            Self::Unbuffered(unbuffered) => unbuffered.new_handshake(),
            Self::Early(early) => early.new_handshake(),
        }
    }

    /// True once the server has sent its `close_notify`.
    pub(crate) fn peer_has_closed(&self) -> bool {
        match self {
            Self::Unbuffered(unbuffered) => unbuffered.peer_has_closed(),
            Self::Early(early) => early.peer_has_closed(),
        }
    }

    /// Puts plaintext into `out`, encrypted.
    pub(crate) fn send(&mut self, plaintext: &[u8], out: &mut Outbox) -> Result<(), TlsError> {
        match self {
            Self::Unbuffered(unbuffered) => unbuffered.send(plaintext, out),
            Self::Early(early) => early.send(plaintext, out),
        }
    }

    /// Puts a `close_notify` into `out`.
    pub(crate) fn close(&mut self, out: &mut Outbox) -> Result<(), TlsError> {
        match self {
            Self::Unbuffered(unbuffered) => unbuffered.close(out),
            Self::Early(early) => {
                early.close(out);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests;
