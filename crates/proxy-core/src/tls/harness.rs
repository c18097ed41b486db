//! TLS without a socket, for fuzzing and measuring.

use crate::io::buffer::Buffer;
use crate::tls::TlsConfigError;
use crate::tls::engine::PARTIAL_BYTES_MAX;
use crate::tls::server::config::TlsConfig;
use crate::tls::server::engine::Engine;
use crate::tls::server::live::{LiveTls, Tls};

/// Hands bytes of a client to TLS as a connection of a proxy does.
#[derive(Debug)]
pub struct TlsHarness {
    config: TlsConfig,
}

#[derive(Debug, Default)]
pub struct HarnessOutcome {
    /// Bytes sent to the client.
    pub output: Vec<u8>,
    /// Plaintext that would go to the upstream, in bytes.
    pub plaintext_bytes: usize,
    /// The most bytes that were kept of incomplete messages.
    pub kept_bytes_max: usize,
    /// Why it ended, if it failed.
    pub failure: Option<String>,
    pub is_handshake_complete: bool,
    /// Server name and fingerprint, if the `ClientHello` was whole and well-formed.
    pub hello: Option<(String, String)>,
}

impl TlsHarness {
    /// # Errors
    /// When TLS cannot be set up like this.
    pub fn new(tls: impl Into<Tls>) -> Result<Self, TlsConfigError> {
        Ok(Self { config: LiveTls::new(tls.into(), false)?.config()? })
    }

    /// Receives `pieces` from the client, until that fails. Of each piece, the first 64 KiB are used.
    pub fn receive<'a>(&self, pieces: impl IntoIterator<Item = &'a [u8]>) -> HarnessOutcome {
        let mut outcome = HarnessOutcome::default();
        let mut engine = match Engine::new(&self.config) {
            Ok(engine) => engine,
            Err(error) => return HarnessOutcome { failure: Some(error.to_string()), ..outcome },
        };
        let (mut plaintext, mut output) = (Buffer::default(), Buffer::default());
        for piece in pieces {
            let piece = &piece[..piece.len().min(PARTIAL_BYTES_MAX)];
            let mut buffer = vec![0; engine.partial_len()];
            buffer.extend_from_slice(piece);
            let result = engine.receive(&mut buffer, &mut plaintext, &mut output);
            outcome.kept_bytes_max = outcome.kept_bytes_max.max(engine.partial_len());
            if let Err(error) = result {
                // The description in a record.
                let session = engine.session();
                let _ = (session.server_name(), session.alpn(), session.client_name());
                outcome.failure = Some(error.to_string());
                break;
            }
        }
        let session = engine.session();
        let fingerprint = || String::from_utf8_lossy(session.fingerprint().unwrap_or_default()).into_owned();
        outcome.hello = session.hello().map(|_| (session.server_name(), fingerprint()));
        outcome.is_handshake_complete = !engine.is_handshaking();
        outcome.plaintext_bytes = plaintext.len();
        output.as_slice().clone_into(&mut outcome.output);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Certificate;

    #[test]
    fn what_is_no_tls_gets_an_alert_and_what_is_cut_off_gets_nothing() {
        let harness = TlsHarness::new(Certificate::generate(&[]).unwrap()).unwrap();
        let refused = harness.receive([&b"GET / HTTP/1.0\r\n\r\n"[..]]);
        assert!(refused.failure.is_some() && refused.output.first() == Some(&21), "{refused:?}");
        let waiting = harness.receive([&[22, 3, 1, 2, 0][..], &[1, 0, 1]]);
        assert!(waiting.failure.is_none() && waiting.output.is_empty() && waiting.kept_bytes_max == 8);
    }
}
