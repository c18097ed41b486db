//! TLS that is passed to an upstream unread: its server name, and what its bytes say of the handshake.

use std::time::{Duration, Instant};

use hello::ServerHello;
use hello::handshake::{End, Handshake, Step};

use crate::upstream::stream::UpstreamHandshake;

/// The most bytes of both directions that are read for a handshake. With long chains of certificates and early data there
/// are some tens of kilobytes.
const READ_BYTES_MAX: usize = 256 << 10;
/// The most memory that a message may take of which bytes are missing. The messages that are kept have a few hundred bytes.
const KEPT_BYTES_MAX: usize = 4 << 10;

pub(crate) struct PassedTls {
    /// That of the `ClientHello`.
    pub(crate) server_name: Box<str>,
    /// `None` once there is a verdict.
    handshake: Option<Box<ObservedHandshake>>,
    verdict: Option<PassedVerdict>,
}

struct ObservedHandshake {
    handshake: Handshake,
    /// When the first byte of the client was read.
    began_at: Instant,
    read_bytes: usize,
}

/// How the handshake of a client with an upstream went, as far as its bytes say.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PassedVerdict {
    Complete(UpstreamHandshake),
    Failed,
    /// It needed too many bytes, or too much memory.
    Unjudged,
}

impl PassedTls {
    pub(crate) fn new(server_name: Box<str>, began_at: Instant) -> Self {
        let handshake = ObservedHandshake { handshake: Handshake::default(), began_at, read_bytes: 0 };
        Self { server_name, handshake: Some(Box::new(handshake)), verdict: None }
    }

    /// `None` while the handshake is under way.
    pub(crate) fn verdict(&self) -> Option<PassedVerdict> {
        self.verdict
    }

    /// Reads bytes that one end has sent.
    pub(crate) fn read(&mut self, end: End, bytes: &[u8]) {
        if let Some(handshake) = &mut self.handshake {
            self.verdict = handshake.read(end, bytes);
        }
        if self.verdict.is_some() {
            self.handshake = None;
        }
    }
}

impl ObservedHandshake {
    #[cold]
    fn read(&mut self, end: End, bytes: &[u8]) -> Option<PassedVerdict> {
        let took = self.began_at.elapsed();
        // A time of 0 would mean that there is none.
        self.handshake.read(end, 1 + took.as_nanos() as u64, bytes, |_| {});
        self.read_bytes += bytes.len();
        match self.handshake.step() {
            Step::Failed => Some(PassedVerdict::Failed),
            Step::Complete => Some(PassedVerdict::Complete(UpstreamHandshake {
                took,
                compute: Duration::ZERO,
                is_resumed: self.handshake.is_resumed(),
                has_offered: self.handshake.has_offer(),
                is_tls13: self.handshake.choice.as_ref().is_some_and(ServerHello::is_tls13),
            })),
            _ if self.read_bytes > READ_BYTES_MAX || self.handshake.kept_bytes() > KEPT_BYTES_MAX => {
                Some(PassedVerdict::Unjudged)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(content: u8, body: &[u8]) -> Vec<u8> {
        [&[content, 3, 3][..], &(body.len() as u16).to_be_bytes(), body].concat()
    }

    const RETRY: [u8; 32] = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
        0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ];

    fn client_hello(has_early_data: bool) -> Vec<u8> {
        let extensions: &[u8] = if has_early_data { &[0, 4, 0, 42, 0, 0] } else { &[] };
        let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0], extensions].concat();
        record(22, &[&[1, 0, 0, body.len() as u8][..], &body].concat())
    }

    /// A connection whose `ClientHello` has early data, or not.
    fn begun(has_early_data: bool) -> PassedTls {
        let mut tls = PassedTls::new("a".into(), Instant::now());
        tls.read(End::Client, &client_hello(has_early_data));
        assert!(tls.verdict().is_none() && tls.handshake.as_ref().unwrap().handshake.step() == Step::Asked);
        tls
    }

    #[test]
    fn a_handshake_without_end_is_given_up() {
        let mut tls = begun(true);
        let data = record(23, &[0; 1 << 10]);
        let mut read = 0;
        while tls.verdict().is_none() {
            tls.read(End::Client, &data);
            read += data.len();
            assert!(read <= READ_BYTES_MAX + data.len());
        }
        assert!(matches!(tls.verdict(), Some(PassedVerdict::Unjudged)) && tls.handshake.is_none());
    }

    #[test]
    fn a_message_that_does_not_end_is_kept_up_to_a_bound() {
        let mut tls = begun(false);
        // A ServerHello of 16,000 bytes, byte by byte.
        tls.read(End::Server, &[22, 3, 3, 0x3f, 0, 2, 0, 0x3e, 0x80]);
        let mut kept_max = 0;
        while let Some(handshake) = &tls.handshake {
            kept_max = kept_max.max(handshake.handshake.kept_bytes());
            tls.read(End::Server, &[7]);
        }
        assert!((KEPT_BYTES_MAX / 2..=KEPT_BYTES_MAX).contains(&kept_max), "{kept_max}");
        assert!(matches!(tls.verdict(), Some(PassedVerdict::Unjudged)));
    }

    fn server_hello(random: [u8; 32]) -> Vec<u8> {
        let body = [&[3, 3][..], &random, &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat();
        record(22, &[&[2, 0, 0, body.len() as u8][..], &body].concat())
    }

    #[test]
    fn early_data_end_with_a_retry() {
        let mut tls = begun(true);
        tls.read(End::Client, &record(23, &[0; 100]));
        // The hash of "HelloRetryRequest" (RFC 8446, 4.1.3).
        tls.read(End::Server, &server_hello(RETRY));
        tls.read(End::Client, &client_hello(false));
        tls.read(End::Server, &server_hello([7; 32]));
        assert!(tls.verdict().is_none());
        // A certificate and what follows it in one record.
        tls.read(End::Client, &record(23, &[0; 900]));
        assert!(matches!(tls.verdict(), Some(PassedVerdict::Complete(_))));
    }
}
