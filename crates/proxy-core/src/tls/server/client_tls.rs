//! TLS of one client: not begun, terminated here, or passed to an upstream unread.

use hello::handshake::End;

use super::engine::Engine;
use super::negotiated::NegotiatedTls;
use super::passed_tls::{PassedTls, PassedVerdict};
use crate::io::buffer::Buffer;
use crate::tls::engine::EngineError;

pub(crate) enum ClientTls {
    /// The client has sent nothing yet, or is refused: it holds no memory for TLS.
    Awaited,
    Terminated(Engine),
    /// Records pass as they are.
    Passed(PassedTls),
}

/// The functions of [`Engine`].
impl ClientTls {
    pub(crate) fn is_passed(&self) -> bool {
        matches!(self, Self::Passed(_))
    }

    /// How the handshake of passed TLS went, once that is known.
    pub(crate) fn passed_verdict(&self) -> Option<PassedVerdict> {
        if let Self::Passed(passed) = self { passed.verdict() } else { None }
    }

    pub(crate) fn partial_len(&self) -> usize {
        match self {
            Self::Terminated(engine) => engine.partial_len(),
            Self::Awaited | Self::Passed(_) => 0,
        }
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Self::Awaited => true,
            Self::Terminated(engine) => engine.is_handshaking(),
            Self::Passed(_) => false,
        }
    }

    pub(crate) fn is_peer_closed(&self) -> bool {
        matches!(self, Self::Terminated(engine) if engine.is_peer_closed())
    }

    pub(crate) fn has_answered(&self) -> bool {
        matches!(self, Self::Terminated(engine) if engine.has_answered())
    }

    pub(crate) fn session(&self) -> NegotiatedTls<'_> {
        match self {
            Self::Awaited => NegotiatedTls::default(),
            Self::Terminated(engine) => engine.session(),
            Self::Passed(passed) => NegotiatedTls::of_passed(&passed.server_name),
        }
    }

    pub(crate) fn is_bound_to_name(&self) -> bool {
        matches!(self, Self::Terminated(engine) if engine.is_bound_to_name())
    }

    pub(crate) fn forget_handshake(&mut self) {
        if let Self::Terminated(engine) = self {
            engine.forget_handshake();
        }
    }

    #[inline]
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        plaintext: &mut Buffer,
        output: &mut Buffer,
    ) -> Result<(), EngineError> {
        match self {
            Self::Terminated(engine) => engine.receive(buffer, plaintext, output),
            Self::Passed(passed) => {
                passed.read(End::Client, buffer);
                plaintext.extend(buffer);
                Ok(())
            }
            Self::Awaited => Err(EngineError::Failed),
        }
    }

    #[inline]
    pub(crate) fn encrypt(&mut self, plaintext: &[u8], output: &mut Buffer) -> Result<(), EngineError> {
        match self {
            Self::Terminated(engine) => engine.encrypt(plaintext, output),
            Self::Passed(passed) => {
                passed.read(End::Server, plaintext);
                output.extend(plaintext);
                Ok(())
            }
            Self::Awaited => Err(EngineError::NotWritable),
        }
    }

    /// Without effect on passed TLS, whose end only its upstream can announce.
    pub(crate) fn close_notify(&mut self, output: &mut Buffer) -> Result<(), EngineError> {
        match self {
            Self::Terminated(engine) => engine.close_notify(output),
            Self::Awaited | Self::Passed(_) => Ok(()),
        }
    }
}
