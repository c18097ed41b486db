//! JA4, a fingerprint of a client's TLS library
//! (<https://github.com/FoxIO-LLC/ja4/blob/main/technical_details/JA4.md>).

use std::cell::RefCell;
use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use aws_lc_rs::digest;

use super::extension;

/// Values of a list that a fingerprint is made of, at most. Real clients send a few dozen, test suites some hundreds.
const VALUES_MAX: usize = 512;
/// Parts of fingerprints whose digest a thread remembers: clients share few libraries.
const RECENT: usize = 64;
/// Hexadecimal digits of a digest.
const DIGITS: usize = 12;

const FINGERPRINT_BYTES: usize = 10 + 1 + DIGITS + 1 + DIGITS;

type Digest = [u8; DIGITS];

/// Such as `t13d1516h2_8daaf6152771_e5627efa2ab1`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::tls) struct Fingerprint([u8; FINGERPRINT_BYTES]);

impl Fingerprint {
    pub(in crate::tls) fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A list of values without GREASE (RFC 8701).
pub(super) struct Values {
    list: [u16; VALUES_MAX],
    len: usize,
    has_overflown: bool,
}

impl Values {
    const fn new() -> Self {
        Self { list: [0; VALUES_MAX], len: 0, has_overflown: false }
    }

    pub(super) fn push(&mut self, value: u16) {
        if is_grease(value) {
            return;
        }
        match self.list.get_mut(self.len) {
            Some(place) => {
                *place = value;
                self.len += 1;
            }
            None => self.has_overflown = true,
        }
    }

    fn as_slice(&self) -> &[u16] {
        &self.list[..self.len]
    }

    fn sorted(&mut self) -> &[u16] {
        self.list[..self.len].sort_unstable();
        self.as_slice()
    }

    /// Two decimal digits.
    fn count(&self) -> [u8; 2] {
        let n = self.len.min(99) as u8;
        [b'0' + n / 10, b'0' + n % 10]
    }
}

fn is_grease(value: u16) -> bool {
    let [high, low] = value.to_be_bytes();
    high == low && low & 0x0f == 0x0a
}

/// What a fingerprint is made of.
pub(super) struct Ja4 {
    /// The highest one.
    pub(super) version: u16,
    pub(super) has_supported_versions: bool,
    pub(super) has_server_name: bool,
    pub(super) ciphers: Values,
    pub(super) extensions: Values,
    pub(super) signatures: Values,
    alpn: [u8; 2],
}

impl Ja4 {
    pub(super) fn new(legacy_version: u16) -> Self {
        Self {
            version: legacy_version,
            has_supported_versions: false,
            has_server_name: false,
            ciphers: Values::new(),
            extensions: Values::new(),
            signatures: Values::new(),
            alpn: *b"00",
        }
    }

    pub(super) fn add_supported_version(&mut self, version: u16) {
        if !is_grease(version) {
            self.version = if self.has_supported_versions { self.version.max(version) } else { version };
            self.has_supported_versions = true;
        }
    }

    /// Takes the first protocol offered.
    pub(super) fn set_alpn(&mut self, first: &[u8]) {
        let (Some(&head), Some(&tail)) = (first.first(), first.last()) else { return };
        self.alpn = if head.is_ascii_alphanumeric() && tail.is_ascii_alphanumeric() {
            [head, tail]
        } else {
            [hex_digit(head >> 4), hex_digit(tail & 0x0f)]
        };
    }

    /// `None` if a list is too long.
    pub(super) fn fingerprint(&mut self) -> Option<Fingerprint> {
        let lists = [&self.ciphers, &self.extensions, &self.signatures];
        if lists.iter().any(|list| list.has_overflown) {
            return None;
        }
        let (ciphers, extensions) = (self.ciphers.count(), self.extensions.count());
        let destination = if self.has_server_name { b'd' } else { b'i' };
        let is_hashed = |kind: &u16| ![extension::SERVER_NAME, extension::ALPN].contains(kind);
        let kinds = self.extensions.sorted().iter().copied().filter(is_hashed);
        let first = digest_of(self.ciphers.sorted().iter().copied(), &[]);
        let second = digest_of(kinds, self.signatures.as_slice());
        let mut text = [b'_'; FINGERPRINT_BYTES];
        text[0] = b't';
        text[1..3].copy_from_slice(version(self.version));
        text[3] = destination;
        text[4..6].copy_from_slice(&ciphers);
        text[6..8].copy_from_slice(&extensions);
        text[8..10].copy_from_slice(&self.alpn);
        text[11..11 + DIGITS].copy_from_slice(&first);
        text[12 + DIGITS..].copy_from_slice(&second);
        Some(Fingerprint(text))
    }
}

fn version(version: u16) -> &'static [u8; 2] {
    match version {
        super::TLS13 => b"13",
        super::TLS12 => b"12",
        0x0302 => b"11",
        0x0301 => b"10",
        0x0300 => b"s3",
        0x0002 => b"s2",
        _ => b"00",
    }
}

fn hex_digit(nibble: u8) -> u8 {
    b"0123456789abcdef"[usize::from(nibble & 0x0f)]
}

/// Digests that were computed before, by a keyed hash of what they are of.
struct Recent {
    keys: RandomState,
    digests: [(u64, Digest); RECENT],
}

thread_local! {
    static RECENT_DIGESTS: RefCell<Recent> =
        RefCell::new(Recent { keys: RandomState::new(), digests: [(0, [0; DIGITS]); RECENT] });
}

/// The beginning of the SHA-256 of both lists as text, or zeros if the first is empty.
fn digest_of(first: impl Iterator<Item = u16> + Clone, second: &[u16]) -> Digest {
    if first.clone().next().is_none() {
        return [b'0'; DIGITS];
    }
    RECENT_DIGESTS.with_borrow_mut(|recent| {
        let mut hasher = recent.keys.build_hasher();
        for value in first.clone() {
            hasher.write_u16(value);
        }
        hasher.write_u32(u32::MAX);
        for &value in second {
            hasher.write_u16(value);
        }
        let key = hasher.finish();
        let place = &mut recent.digests[key as usize % RECENT];
        if place.0 != key {
            *place = (key, compute(first, second));
        }
        place.1
    })
}

#[cold]
fn compute(first: impl Iterator<Item = u16>, second: &[u16]) -> Digest {
    let mut text = Vec::new();
    push_list(&mut text, first);
    if !second.is_empty() {
        text.push(b'_');
        push_list(&mut text, second.iter().copied());
    }
    let digest = digest::digest(&digest::SHA256, &text);
    let mut digits = Digest::default();
    for (pair, byte) in digits.chunks_exact_mut(2).zip(digest.as_ref()) {
        pair.copy_from_slice(&[hex_digit(byte >> 4), hex_digit(*byte)]);
    }
    digits
}

fn push_list(text: &mut Vec<u8>, values: impl Iterator<Item = u16>) {
    for (i, value) in values.enumerate() {
        if i > 0 {
            text.push(b',');
        }
        text.extend([12, 8, 4, 0].map(|shift| hex_digit((value >> shift) as u8)));
    }
}
