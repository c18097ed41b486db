//! The decision, by a client's `ClientHello`, whether its TLS is passed to an upstream unread, or answers a challenge of ACME.

use hello::HelloReader;

use crate::tls::{PARTIAL_BYTES_MAX, TlsConfig};
use crate::upstream::route::NameRoutes;

/// The first bytes of a client, until its server name is known.
#[derive(Default)]
pub(super) struct AwaitedHello {
    reader: HelloReader,
    /// Everything that was read, while that is no whole `ClientHello`.
    bytes: Vec<u8>,
}

/// What happens to the first bytes.
pub(super) enum HelloDecision {
    Wait,
    /// TLS is terminated here. It is the normal way for everything that is not certainly passed: also for what is no TLS,
    /// is malformed, names no host, or does not end.
    Terminate,
    /// TLS is passed to the upstreams of this name.
    Pass(Box<str>),
    /// An authority validates the domain; TLS is terminated with this configuration.
    Challenge(Box<TlsConfig>),
}

impl AwaitedHello {
    /// Bytes that [`AwaitedHello::decide`] needs free in front of new ones.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Memory that it holds.
    pub(super) fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.reader.kept_bytes()
    }

    /// Decides on `bytes`, which begin with [`AwaitedHello::len`] free bytes; puts the earlier ones there.
    pub(super) fn decide(&mut self, bytes: &mut [u8], routes: &NameRoutes, tls: &TlsConfig) -> HelloDecision {
        let (earlier, new) = bytes.split_at_mut(self.bytes.len());
        earlier.copy_from_slice(&self.bytes);
        let hello = self.reader.read(new);
        if let Some(hello) = hello
            && let Some(name) = hello.server_name
        {
            if hello.is_acme_challenge
                && let Some(config) = tls.challenge(&name)
            {
                return HelloDecision::Challenge(Box::new(config));
            }
            if routes.passed(&name).is_some() {
                return HelloDecision::Pass(name);
            }
        }
        if self.reader.is_done() || bytes.len() > PARTIAL_BYTES_MAX {
            return HelloDecision::Terminate;
        }
        if bytes.len() > self.bytes.capacity() {
            let room = (2 * bytes.len()).min(PARTIAL_BYTES_MAX);
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        self.bytes.extend_from_slice(&bytes[self.bytes.len()..]);
        HelloDecision::Wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::{Certificate, LiveTls};
    use crate::upstream::route::NameRoute;

    /// Reads pieces of bytes until there is a decision; returns what was read then, and the most that was held.
    fn decided(bytes: &[u8], piece: usize) -> (usize, usize) {
        let route = "passed.test=unix:/a".parse::<NameRoute>().unwrap().passed();
        let routes = NameRoutes::new(false, 1, &[route]).unwrap();
        let tls = LiveTls::new(Certificate::generate(&[]).unwrap().into(), false).unwrap().config().unwrap();
        let (mut hello, mut read, mut held_max) = (AwaitedHello::default(), 0, 0);
        for part in bytes.chunks(piece) {
            let mut buffer = [&vec![0; hello.len()], part].concat();
            read += part.len();
            if !matches!(hello.decide(&mut buffer, &routes, &tls), HelloDecision::Wait) {
                assert!(buffer == bytes[..read], "the earlier bytes are in front");
                return (read, held_max);
            }
            held_max = held_max.max(hello.held_bytes());
        }
        panic!("it waits for more than {} bytes", bytes.len());
    }

    #[test]
    fn a_message_that_does_not_end_is_held_up_to_a_bound_and_not_passed() {
        // Almost 16 KiB in records of a byte, which take 96 KiB.
        let message = [&[1, 0, 0x3f, 0xff][..], &[7; 0x3ff0]].concat();
        let bytes: Vec<u8> = message.iter().flat_map(|&byte| [22, 3, 1, 0, 1, byte]).collect();
        for piece in [97, 1_460, 40_000] {
            let (read, held_max) = decided(&bytes, piece);
            assert!((PARTIAL_BYTES_MAX + 1..=PARTIAL_BYTES_MAX + piece).contains(&read), "{read}");
            assert!(held_max <= PARTIAL_BYTES_MAX + (16 << 10), "{held_max}");
        }
    }

    #[test]
    fn what_is_no_client_hello_is_decided_at_once() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], &[22, 3, 1, 0, 4, 2, 0, 0, 0], &[22, 3, 1, 0xff, 0xff]] {
            assert!(decided(bytes, 1).1 <= 64, "{bytes:?}");
        }
    }
}
