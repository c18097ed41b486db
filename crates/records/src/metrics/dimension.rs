//! What handshakes and traffic are counted by.

use crate::text::keywords::keyword_enum;

keyword_enum! {
    /// A property by which handshakes and traffic are counted.
    Dimension {
        /// TLS version, such as `TLSv1.3`.
        #[default]
        Version = "version",
        /// Group of the key exchange, by its IANA name.
        Group = "group",
        /// Cipher suite, by its IANA name.
        Cipher = "cipher",
        /// Scheme of the proxy's signature, by its IANA name; full handshakes only.
        Signature = "signature",
        /// Application protocol; `none` without one.
        Alpn = "alpn",
        /// Certificate presented, by its first name; full handshakes only.
        Certificate = "certificate",
        /// Server name that the client asked for; `none` without one.
        Name = "name",
        /// Fingerprint of the client's TLS library (JA4).
        Fingerprint = "fingerprint",
        /// Who has issued the client's certificate, or is said to by one that is refused.
        Issuer = "issuer",
        /// Server that was observed by its packets, by its port, and its process if it runs here.
        Service = "service",
    }
}

impl Dimension {
    /// Whether failed handshakes are counted by its values. What they would have negotiated is unknown.
    pub fn has_failures(self) -> bool {
        matches!(self, Self::Name | Self::Fingerprint | Self::Issuer | Self::Service)
    }
}
