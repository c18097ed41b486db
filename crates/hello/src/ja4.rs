//! JA4, a fingerprint of a client's TLS library
//! (<https://github.com/FoxIO-LLC/ja4/blob/main/technical_details/JA4.md>), as of a `ClientHello` without an offer to
//! resume: a client that comes back has the fingerprint of its first visit.

use std::cell::RefCell;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};

use sha2::{Digest as _, Sha256};

use super::{HelloBytes, extension};

/// Values of a list that a fingerprint is made of, at most. Real clients send a few dozen, test suites some hundreds.
const VALUES_MAX: usize = 512;
/// Fingerprints whose digests a thread remembers: clients share few libraries.
const RECENT: usize = 64;
/// Hexadecimal digits of a digest.
const DIGITS: usize = 12;
const FINGERPRINT_BYTES: usize = 10 + 1 + DIGITS + 1 + DIGITS;

type Digest = [u8; DIGITS];

/// Such as `t13d1516h2_8daaf6152771_e5627efa2ab1`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; FINGERPRINT_BYTES]);

impl Fingerprint {
    /// Its text, which is ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// A hash over values in any order, without GREASE (RFC 8701).
#[derive(Default)]
struct ValueSet {
    len: usize,
    /// The sum of their hashes, which does not depend on the order: clients permute their extensions.
    hash: u64,
}

impl ValueSet {
    /// Two decimal digits.
    fn count(&self) -> [u8; 2] {
        let n = self.len.min(99) as u8;
        [b'0' + n / 10, b'0' + n % 10]
    }
}

fn is_grease(value: u16) -> bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
}

/// A folded multiplication of a value by itself: not linear, so that sums of its results tell sets of values apart.
fn mix(value: u64) -> u64 {
    let product = u128::from(value) * u128::from(value.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15);
    product as u64 ^ (product >> 64) as u64
}

pub(super) struct Ja4<'a> {
    /// The highest one.
    pub(super) version: u16,
    pub(super) has_supported_versions: bool,
    pub(super) has_server_name: bool,
    alpn: [u8; 2],
    /// In the order of the message.
    pub(super) ciphers: HelloBytes<'a>,
    pub(super) extensions: HelloBytes<'a>,
    pub(super) signatures: HelloBytes<'a>,
    seed: u64,
    cipher_set: ValueSet,
    extension_set: ValueSet,
}

impl Ja4<'_> {
    pub(super) fn new(legacy_version: u16) -> Self {
        Self {
            version: legacy_version,
            has_supported_versions: false,
            has_server_name: false,
            alpn: *b"00",
            ciphers: HelloBytes(&[]),
            extensions: HelloBytes(&[]),
            signatures: HelloBytes(&[]),
            seed: RECENT_DIGESTS.with_borrow(|recent| recent.seed),
            cipher_set: ValueSet::default(),
            extension_set: ValueSet::default(),
        }
    }

    pub(super) fn add_cipher(&mut self, suite: u16) {
        if !is_grease(suite) {
            self.cipher_set.len += 1;
            self.cipher_set.hash = self.cipher_set.hash.wrapping_add(mix(self.seed ^ u64::from(suite)));
        }
    }

    /// Takes the type of one of the extensions.
    pub(super) fn add_extension(&mut self, kind: u16) {
        if is_counted(kind) {
            self.extension_set.len += 1;
            let hash = if is_hashed(kind) { mix(self.seed ^ u64::from(kind)) } else { 0 };
            self.extension_set.hash = self.extension_set.hash.wrapping_add(hash);
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
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        let longest = self.cipher_set.len.max(self.extension_set.len).max(self.signatures.0.len() / 2);
        if longest > VALUES_MAX {
            return None;
        }
        let (first, second) = self.digests()?;
        let mut text = [b'_'; FINGERPRINT_BYTES];
        text[0] = b't';
        text[1..3].copy_from_slice(version(self.version));
        text[3] = if self.has_server_name { b'd' } else { b'i' };
        text[4..6].copy_from_slice(&self.cipher_set.count());
        text[6..8].copy_from_slice(&self.extension_set.count());
        text[8..10].copy_from_slice(&self.alpn);
        text[11..11 + DIGITS].copy_from_slice(&first);
        text[12 + DIGITS..].copy_from_slice(&second);
        Some(Fingerprint(text))
    }

    /// The digests of both parts, from memory if a client of the same library was here lately.
    fn digests(&self) -> Option<(Digest, Digest)> {
        let (chunks, rest) = self.signatures.0.as_chunks::<8>();
        let rest = rest.iter().fold(rest.len() as u64, |sum, &byte| sum << 8 | u64::from(byte));
        let chunks = chunks.iter().map(|chunk| u64::from_be_bytes(*chunk));
        let signatures = chunks.chain([rest]).fold(self.seed, |hash, chunk| mix(hash ^ chunk));
        let key = mix(self.cipher_set.hash ^ mix(self.extension_set.hash ^ signatures));
        RECENT_DIGESTS.with_borrow_mut(|recent| {
            let place = &mut recent.digests[key as usize % RECENT];
            if place.0 != key {
                *place = (key, self.compute()?);
            }
            Some(place.1)
        })
    }

    #[cold]
    fn compute(&self) -> Option<(Digest, Digest)> {
        let mut ciphers: Vec<_> = self.ciphers.all_u16()?.filter(|&suite| !is_grease(suite)).collect();
        ciphers.sort_unstable();
        let (mut kinds, mut rest) = (Vec::new(), self.extensions);
        while !rest.0.is_empty() {
            let kind = rest.u16()?;
            rest.vec16()?;
            if is_counted(kind) && is_hashed(kind) {
                kinds.push(kind);
            }
        }
        kinds.sort_unstable();
        let signatures: Vec<_> = self.signatures.all_u16()?.filter(|&scheme| !is_grease(scheme)).collect();
        Some((digest_of(&ciphers, &[]), digest_of(&kinds, &signatures)))
    }
}

/// Whether an extension is one of those of the first visit. These two are sent with a ticket of TLS 1.3 only.
fn is_counted(kind: u16) -> bool {
    !is_grease(kind) && kind != extension::PRE_SHARED_KEY && kind != extension::EARLY_DATA
}

/// Whether an extension is part of the digest: its presence shows in front of that otherwise.
fn is_hashed(kind: u16) -> bool {
    ![extension::SERVER_NAME, extension::ALPN].contains(&kind)
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

/// Recently computed digests, by a keyed hash of their input.
struct RecentDigests {
    seed: u64,
    digests: [(u64, (Digest, Digest)); RECENT],
}

thread_local! {
    static RECENT_DIGESTS: RefCell<RecentDigests> = RefCell::new(RecentDigests {
        seed: RandomState::new().hash_one(()),
        digests: [(0, Default::default()); RECENT],
    });
}

/// The beginning of the SHA-256 of both lists as text, or zeros if the first is empty.
fn digest_of(first: &[u16], second: &[u16]) -> Digest {
    if first.is_empty() {
        return [b'0'; DIGITS];
    }
    let mut text = Vec::new();
    push_list(&mut text, first);
    if !second.is_empty() {
        text.push(b'_');
        push_list(&mut text, second);
    }
    let digest = Sha256::digest(&text);
    let mut digits = Digest::default();
    for (pair, byte) in digits.chunks_exact_mut(2).zip(digest.iter()) {
        pair.copy_from_slice(&[hex_digit(byte >> 4), hex_digit(*byte)]);
    }
    digits
}

fn push_list(text: &mut Vec<u8>, values: &[u16]) {
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        text.extend([12, 8, 4, 0].map(|shift| hex_digit((value >> shift) as u8)));
    }
}
