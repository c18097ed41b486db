//! The records of one direction of a connection, and what stands in them in the clear, from bytes in order.

/// Bytes in front of a record (RFC 8446, 5.1), and of a handshake message (4).
const RECORD_HEADER_BYTES: usize = 5;
const MESSAGE_HEADER_BYTES: usize = 4;
/// The level of an alert that ends nothing (RFC 5246, 7.2).
const WARNING: u8 = 1;
/// The longest record: 2^14 bytes and what TLS 1.2 may add (RFC 5246, 6.2.3).
const RECORD_BYTES_MAX: usize = (16 << 10) + 2048;
/// The longest message that is kept; real ones have a few hundred bytes to a few thousand.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// Types of records.
pub mod content {
    pub const CHANGE_CIPHER_SPEC: u8 = 20;
    pub const ALERT: u8 = 21;
    pub const HANDSHAKE: u8 = 22;
    pub const APPLICATION_DATA: u8 = 23;
}

/// Types of handshake messages (RFC 8446, 4; RFC 5246, 7.4).
pub mod message {
    pub const CLIENT_HELLO: u8 = 1;
    pub const SERVER_HELLO: u8 = 2;
    pub const SERVER_KEY_EXCHANGE: u8 = 12;
    pub const SERVER_HELLO_DONE: u8 = 14;
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent<'a> {
    /// A handshake message in the clear, with its body if it is a hello or a `ServerKeyExchange`.
    Message {
        kind: u8,
        body: &'a [u8],
    },
    ChangeCipherSpec,
    /// An alert in the clear, by its description.
    Alert {
        is_fatal: bool,
        description: u8,
    },
    /// A whole record whose content is encrypted.
    Encrypted {
        content: u8,
        len: u16,
    },
    /// It is not TLS, or no longer. Nothing more is read.
    NotTls,
}

/// What follows in the direction that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protection {
    #[default]
    Clear,
    Encrypted,
}

/// Reads one direction. Each byte is processed once, and nothing but the hellos and the `ServerKeyExchange` is kept.
#[derive(Debug, Default)]
pub struct TlsStream {
    header: [u8; RECORD_HEADER_BYTES],
    header_len: u8,
    /// Bytes of the present record that are still missing.
    left: u16,
    protection: Protection,
    is_over: bool,
    message: Option<Box<PartialMessage>>,
}

/// A handshake message or an alert of which bytes are missing.
#[derive(Debug, Default)]
struct PartialMessage {
    bytes: Vec<u8>,
    /// Bytes of a message that is not kept which are still missing.
    skip: u32,
}

impl TlsStream {
    /// Memory of a message of which bytes are missing.
    pub fn kept_bytes(&self) -> usize {
        self.message.as_ref().map_or(0, |partial| partial.bytes.capacity())
    }

    /// Reads the next bytes. `each` is told of what they complete, and says what follows.
    pub fn read(&mut self, mut bytes: &[u8], mut each: impl FnMut(StreamEvent<'_>) -> Protection) {
        while !bytes.is_empty() && !self.is_over {
            let header_left = RECORD_HEADER_BYTES - usize::from(self.header_len);
            let wanted = if header_left > 0 { header_left } else { usize::from(self.left) };
            let (part, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if header_left > 0 {
                self.add_header(part, &mut each);
            } else {
                self.left -= part.len() as u16;
                self.add_content(part, &mut each);
            }
            if usize::from(self.header_len) == RECORD_HEADER_BYTES && self.left == 0 {
                self.header_len = 0;
            }
        }
    }

    fn fail(&mut self, each: &mut impl FnMut(StreamEvent<'_>) -> Protection) {
        self.is_over = true;
        self.message = None;
        each(StreamEvent::NotTls);
    }

    fn add_header(&mut self, part: &[u8], each: &mut impl FnMut(StreamEvent<'_>) -> Protection) {
        let at = usize::from(self.header_len);
        self.header[at..][..part.len()].copy_from_slice(part);
        self.header_len += part.len() as u8;
        let [kind, major, _, high, low] = self.header;
        let is_record = (content::CHANGE_CIPHER_SPEC..=content::APPLICATION_DATA).contains(&kind);
        if !is_record || (self.header_len > 1 && major != 3) {
            return self.fail(each);
        }
        if usize::from(self.header_len) < RECORD_HEADER_BYTES {
            return;
        }
        self.left = u16::from_be_bytes([high, low]);
        let is_empty_data = self.left == 0 && kind != content::APPLICATION_DATA;
        if usize::from(self.left) > RECORD_BYTES_MAX || is_empty_data {
            self.fail(each);
        }
    }

    fn add_content(&mut self, part: &[u8], each: &mut impl FnMut(StreamEvent<'_>) -> Protection) {
        let [kind, _, _, high, low] = self.header;
        let len = u16::from_be_bytes([high, low]);
        let is_whole = self.left == 0;
        match (kind, self.protection) {
            (content::CHANGE_CIPHER_SPEC, _) => {
                if is_whole {
                    self.protection = each(StreamEvent::ChangeCipherSpec);
                }
            }
            (content::HANDSHAKE, Protection::Clear) => self.add_message(part, each),
            // A sealed alert is longer than an open one, whatever was said before.
            (content::ALERT, Protection::Clear) if len == 2 => {
                let bytes = &mut self.message.get_or_insert_default().bytes;
                bytes.extend_from_slice(part);
                if let &[level, description] = bytes.as_slice() {
                    self.message = None;
                    self.protection = each(StreamEvent::Alert { is_fatal: level != WARNING, description });
                }
            }
            _ => {
                if is_whole {
                    each(StreamEvent::Encrypted { content: kind, len });
                }
            }
        }
    }

    /// Adds bytes of handshake messages, which need not begin or end where records do.
    fn add_message(&mut self, mut part: &[u8], each: &mut impl FnMut(StreamEvent<'_>) -> Protection) {
        let partial = self.message.get_or_insert_default();
        while !part.is_empty() {
            if partial.skip > 0 {
                let skipped = part.len().min(partial.skip as usize);
                partial.skip -= skipped as u32;
                part = &part[skipped..];
                continue;
            }
            let wanted = match partial.bytes.as_slice() {
                &[_, high, middle, low, ..] => {
                    MESSAGE_HEADER_BYTES + u32::from_be_bytes([0, high, middle, low]) as usize
                }
                _ => MESSAGE_HEADER_BYTES,
            };
            let (taken, rest) = part.split_at((wanted - partial.bytes.len()).min(part.len()));
            partial.bytes.extend_from_slice(taken);
            part = rest;
            let Some((&[kind, len @ ..], body)) = partial.bytes.split_first_chunk::<MESSAGE_HEADER_BYTES>()
            else {
                continue;
            };
            let [high, middle, low] = len;
            let len = u32::from_be_bytes([0, high, middle, low]);
            let is_kept =
                matches!(kind, message::CLIENT_HELLO | message::SERVER_HELLO | message::SERVER_KEY_EXCHANGE);
            if is_kept && len as usize > KEPT_BYTES_MAX {
                return self.fail(each);
            }
            if !is_kept || body.len() == len as usize {
                self.protection = each(StreamEvent::Message { kind, body });
                partial.skip = if is_kept { 0 } else { len };
                partial.bytes.clear();
            }
        }
        if partial.bytes.is_empty() && partial.skip == 0 {
            self.message = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The events of bytes that come in these pieces, in words.
    fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<String>, usize) {
        let (mut stream, mut events, mut kept) = (TlsStream::default(), Vec::new(), 0);
        for piece in pieces {
            stream.read(piece, |event| {
                events.push(format!("{event:?}"));
                match event {
                    StreamEvent::ChangeCipherSpec => Protection::Encrypted,
                    _ => Protection::Clear,
                }
            });
            kept = kept.max(stream.kept_bytes());
        }
        (events, kept)
    }

    fn record(content: u8, body: &[u8]) -> Vec<u8> {
        let len = (body.len() as u16).to_be_bytes();
        [&[content, 3, 3], &len[..], body].concat()
    }

    /// Records as they may be: whole messages, parts of them, alerts, encrypted ones.
    fn records() -> impl Strategy<Value = Vec<u8>> {
        let body = prop::collection::vec(any::<u8>(), 1..40);
        let any_record = (20_u8..24, body.clone()).prop_map(|(content, body)| record(content, &body));
        let message = (prop::sample::select(vec![1_u8, 2, 11, 12, 14]), body).prop_map(|(kind, body)| {
            record(content::HANDSHAKE, &[&[kind, 0, 0, body.len() as u8], &body[..]].concat())
        });
        prop::collection::vec(prop_oneof![any_record, message], 0..8).prop_map(|all| all.concat())
    }

    proptest! {
        #[test]
        fn pieces_say_what_the_whole_says(
            bytes in prop_oneof![records(), prop::collection::vec(any::<u8>(), 0..200)],
            size in 1_usize..30,
        ) {
            let (whole, kept) = events([&bytes[..]]);
            prop_assert_eq!(&whole, &events(bytes.chunks(size)).0);
            prop_assert!(kept <= bytes.len().max(8).next_power_of_two());
        }
    }

    #[test]
    fn a_long_message_is_refused_before_it_is_kept() {
        let len = (KEPT_BYTES_MAX as u32 + 1).to_be_bytes();
        let hello = [&[message::CLIENT_HELLO, len[1], len[2], len[3]], &[0; 9_000][..]].concat();
        let (events, kept) = events([&record(content::HANDSHAKE, &hello)[..]]);
        assert_eq!((events.as_slice(), kept), (&["NotTls".to_owned()][..], 0));
    }

    #[test]
    fn a_certificate_is_skipped_and_what_follows_is_read() {
        let certificate = [&[11, 0, 0x30, 0], &[7; 0x3000][..]].concat();
        let bytes = [certificate.as_slice(), &[message::SERVER_HELLO_DONE, 0, 0, 0]].concat();
        let records: Vec<u8> =
            bytes.chunks(9_000).flat_map(|part| record(content::HANDSHAKE, part)).collect();
        let (events, kept) = events([&records[..]]);
        assert_eq!(events, ["Message { kind: 11, body: [] }", "Message { kind: 14, body: [] }"]);
        assert!(kept < 64, "{kept}");
    }

    #[test]
    fn a_warning_is_told_from_a_fatal_alert_and_both_from_an_encrypted_one() {
        let alerts = [record(content::ALERT, &[1, 112]), record(content::ALERT, &[2, 48])].concat();
        let sealed = [record(content::CHANGE_CIPHER_SPEC, &[1]), record(content::ALERT, &[0; 26])].concat();
        assert_eq!(
            events([&alerts[..], &sealed[..]]).0,
            [
                "Alert { is_fatal: false, description: 112 }",
                "Alert { is_fatal: true, description: 48 }",
                "ChangeCipherSpec",
                "Encrypted { content: 21, len: 26 }",
            ]
        );
    }
}
