//! A client's offers, parsed from its `ClientHello` (RFC 8446, 4.1.2), because TLS libraries do not report all of them. It knows no
//! such library.
//!
//! They are counted: the reason of a full handshake, and parameters without an alternative. They decide an alert, and by the
//! server name which connections are passed to an upstream unread.

pub mod handshake;
mod ja4;
mod names;
mod reader;
mod server;
pub mod stream;

pub use ja4::Fingerprint;
use ja4::Ja4;
pub use names::{alert_words, group_name, is_name, suite_name};
pub use reader::HelloReader;
pub use server::{ServerHello, key_exchange_group, version_name};

const TLS12: u16 = 0x0303;
const TLS13: u16 = 0x0304;
/// The list of protocols with `acme-tls/1` alone.
const ACME_TLS: &[u8] = b"\x0aacme-tls/1";

/// Extensions that are parsed (IANA, TLS `ExtensionType` Values).
mod extension {
    pub(super) const SERVER_NAME: u16 = 0;
    pub(super) const SUPPORTED_GROUPS: u16 = 10;
    pub(super) const SIGNATURE_ALGORITHMS: u16 = 13;
    pub(super) const ALPN: u16 = 16;
    pub(super) const SESSION_TICKET: u16 = 35;
    pub(super) const PRE_SHARED_KEY: u16 = 41;
    pub(super) const EARLY_DATA: u16 = 42;
    pub(super) const SUPPORTED_VERSIONS: u16 = 43;
    pub(super) const KEY_SHARE: u16 = 51;
    pub(super) const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an offer of its own")]
pub struct ClientHello {
    /// In lower case; `None` if there is none, or it is not a DNS name.
    pub server_name: Option<Box<str>>,
    pub choices: Choices,
    pub resumption: ResumptionOffer,
    /// Whether it offers application protocols.
    pub has_alpn: bool,
    /// Whether the only one is `acme-tls/1`: an authority validates the domain (RFC 8737, 3).
    pub is_acme_challenge: bool,
    /// Whether it sends data before the handshake is complete (0-RTT).
    pub has_early_data: bool,
    /// Whether its true server name is encrypted, or it pretends so (ECH).
    pub has_ech: bool,
    /// `None` if the lists are too long to be real.
    pub fingerprint: Option<Fingerprint>,
}

/// The means by which a client offers to resume a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResumptionOffer {
    /// A pre-shared key of TLS 1.3.
    pub has_psk: bool,
    /// A ticket of TLS 1.2 that is not empty.
    pub has_ticket: bool,
    /// A session identifier. With TLS 1.3 it may mean nothing (RFC 8446, D.4).
    pub has_session_id: bool,
}

impl ResumptionOffer {
    /// Whether the offer exists only in TLS 1.3, or only in TLS 1.2.
    pub fn is_for_one_version(self) -> bool {
        self.has_psk != self.has_ticket
    }
}

/// Sets of the versions, cipher suites and groups that the proxy supports, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choices {
    versions: u8,
    groups: u8,
    suites: u16,
}

const BIT_TLS12: u8 = 1;
const BIT_TLS13: u8 = 2;
const BIT_MLKEM: u8 = 8;
const SUITES_TLS13: u16 = 0b111;

impl Choices {
    pub fn add_version(&mut self, version: u16) {
        self.versions |= match version {
            TLS12 => BIT_TLS12,
            TLS13 => BIT_TLS13,
            _ => 0,
        };
    }

    pub fn add_group(&mut self, group: u16) {
        self.groups |= match group {
            0x001d => 1,
            0x0017 => 2,
            0x0018 => 4,
            0x11ec => BIT_MLKEM,
            _ => 0,
        };
    }

    pub fn add_suite(&mut self, suite: u16) {
        // TLS 1.3, ECDSA and RSA, each with AES-128, AES-256 and ChaCha20.
        self.suites |= match suite.to_be_bytes() {
            [0x13, n @ 1..=3] => 1 << (n - 1),
            [0xc0, 0x2b] => 1 << 3,
            [0xc0, 0x2c] => 1 << 4,
            [0xcc, 0xa9] => 1 << 5,
            [0xc0, 0x2f] => 1 << 6,
            [0xc0, 0x30] => 1 << 7,
            [0xcc, 0xa8] => 1 << 8,
            _ => 0,
        };
    }

    /// Whether there is a version that the proxy supports.
    pub fn has_version(self) -> bool {
        self.versions != 0
    }

    pub fn has_tls13(self) -> bool {
        self.versions & BIT_TLS13 != 0
    }

    pub fn has_mlkem(self) -> bool {
        self.groups & BIT_MLKEM != 0
    }

    /// Whether exactly one version is also in `allowed`; the same for groups and for suites, of those for TLS 1.3 or
    /// for TLS 1.2.
    pub fn single(self, allowed: Self, is_tls13: bool) -> SingleChoices {
        let groups = if is_tls13 { u8::MAX } else { !BIT_MLKEM };
        let suites = if is_tls13 { SUITES_TLS13 } else { !SUITES_TLS13 };
        SingleChoices {
            version: (self.versions & allowed.versions).is_power_of_two(),
            group: (self.groups & allowed.groups & groups).is_power_of_two(),
            cipher: (self.suites & allowed.suites & suites).is_power_of_two(),
        }
    }
}

/// The parameters for which only one value suited both the client and the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SingleChoices {
    pub version: bool,
    pub group: bool,
    pub cipher: bool,
}

impl ClientHello {
    /// Reads the body of a `ClientHello`. `None` if it is malformed.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut body = HelloBytes(body);
        let (mut hello, mut ja4) = (Self::default(), Ja4::new(body.u16()?));
        body.take(32)?;
        hello.resumption.has_session_id = !body.vec8()?.0.is_empty();
        ja4.ciphers = body.vec16()?;
        for suite in ja4.ciphers.all_u16()? {
            hello.choices.add_suite(suite);
            ja4.add_cipher(suite);
        }
        body.vec8()?;
        let mut extensions = if body.0.is_empty() { HelloBytes(&[]) } else { body.vec16()? };
        ja4.extensions = extensions;
        while !extensions.0.is_empty() {
            let (kind, content) = (extensions.u16()?, extensions.vec16()?);
            ja4.add_extension(kind);
            hello.read_extension(kind, content, &mut ja4)?;
        }
        if !ja4.has_supported_versions && ja4.version >= TLS12 {
            hello.choices.add_version(TLS12);
        }
        hello.fingerprint = ja4.fingerprint();
        body.0.is_empty().then_some(hello)
    }

    fn read_extension<'a>(
        &mut self,
        kind: u16,
        mut content: HelloBytes<'a>,
        ja4: &mut Ja4<'a>,
    ) -> Option<()> {
        match kind {
            extension::SERVER_NAME => {
                ja4.has_server_name = true;
                self.read_server_name(content)?;
            }
            extension::SUPPORTED_GROUPS => {
                content.vec16()?.all_u16()?.for_each(|group| self.choices.add_group(group));
            }
            extension::SIGNATURE_ALGORITHMS => {
                ja4.signatures = content.vec16()?;
            }
            extension::ALPN => {
                self.has_alpn = true;
                let mut protocols = content.vec16()?;
                self.is_acme_challenge = protocols.0 == ACME_TLS;
                ja4.set_alpn(protocols.vec8()?.0);
            }
            extension::EARLY_DATA => self.has_early_data = true,
            extension::ENCRYPTED_CLIENT_HELLO => self.has_ech = true,
            extension::SESSION_TICKET => self.resumption.has_ticket = !content.0.is_empty(),
            extension::PRE_SHARED_KEY => self.resumption.has_psk = true,
            extension::SUPPORTED_VERSIONS => {
                for version in content.vec8()?.all_u16()? {
                    self.choices.add_version(version);
                    ja4.add_supported_version(version);
                }
            }
            _ => {}
        }
        Some(())
    }

    /// Reads a `server_name` extension (RFC 6066, 3). A second name is malformed, because others could take it for the
    /// first one.
    fn read_server_name(&mut self, mut content: HelloBytes<'_>) -> Option<()> {
        let mut names = content.vec16()?;
        while !names.0.is_empty() {
            let (kind, name) = (names.u8()?, names.vec16()?.0);
            let is_dns = |&byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            if kind == 0 && self.server_name.is_some() {
                return None;
            }
            if kind == 0 && (1..=253).contains(&name.len()) && name.iter().all(is_dns) {
                let mut name = Box::<str>::from(str::from_utf8(name).ok()?);
                name.make_ascii_lowercase();
                self.server_name = Some(name);
            }
        }
        Some(())
    }
}

/// Bytes that have not been read yet.
#[derive(Clone, Copy)]
struct HelloBytes<'a>(&'a [u8]);

impl<'a> HelloBytes<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A vector with a length of one byte.
    fn vec8(&mut self) -> Option<Self> {
        let len = self.u8()?;
        self.take(usize::from(len)).map(Self)
    }

    /// A vector with a length of two bytes.
    fn vec16(&mut self) -> Option<Self> {
        let len = self.u16()?;
        self.take(usize::from(len)).map(Self)
    }

    fn all_u16(self) -> Option<impl Iterator<Item = u16> + 'a> {
        let (pairs, rest) = self.0.as_chunks::<2>();
        rest.is_empty().then(|| pairs.iter().map(|pair| u16::from_be_bytes(*pair)))
    }
}

#[cfg(test)]
mod tests;
