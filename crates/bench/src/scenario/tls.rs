//! The TLS settings that all targets get, and how programs name them.

use serde::{Deserialize, Serialize};

/// The key of the certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeyKind {
    /// ECDSA with P-256.
    #[default]
    Ecdsa,
    /// RSA with 2,048 bits.
    Rsa,
}

/// The parameters that every target is configured to negotiate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchTlsConfig {
    /// The certificate's default key type.
    pub key: KeyKind,
    /// The only cipher suite of TLS 1.3, by its name in RFC 8446. TLS 1.2 uses the same cipher with ECDHE.
    pub cipher: String,
    /// The only key exchange group, by its name in RFC 8446.
    pub group: String,
}

/// The cipher suites of TLS 1.3, and OpenSSL's name of the same cipher in TLS 1.2.
const CIPHERS: [(&str, &str); 3] = [
    ("TLS_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
    ("TLS_AES_256_GCM_SHA384", "AES256-GCM-SHA384"),
    ("TLS_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305"),
];
/// The groups that every template's program supports.
const GROUPS: [&str; 3] = ["x25519", "secp256r1", "secp384r1"];

impl Default for BenchTlsConfig {
    fn default() -> Self {
        Self { key: KeyKind::default(), cipher: CIPHERS[0].0.to_owned(), group: GROUPS[0].to_owned() }
    }
}

impl BenchTlsConfig {
    /// The cipher suites of TLS 1.3 and 1.2 by their IANA names.
    pub fn iana_ciphers(&self) -> Vec<String> {
        let tls12 = self.cipher.strip_prefix("TLS_").unwrap_or(&self.cipher);
        let tls12 = ["ECDSA", "RSA"].map(|key| format!("TLS_ECDHE_{key}_WITH_{tls12}"));
        [self.cipher.clone()].into_iter().chain(tls12).collect()
    }

    /// The cipher suites of TLS 1.2 as a list of OpenSSL.
    pub fn openssl_ciphers(&self) -> String {
        let cipher =
            CIPHERS.into_iter().find(|(name, _)| *name == self.cipher).map_or("", |(_, cipher)| cipher);
        format!("ECDHE-ECDSA-{cipher}:ECDHE-RSA-{cipher}")
    }

    /// The flags of `tlsdash load` that offer only this. With TLS 1.2, OpenSSL requires the curve of an ECDSA
    /// certificate among the client's groups; servers still choose the configured one, the only one that they allow.
    pub fn load_flags(&self) -> [String; 2] {
        let ciphers = self.iana_ciphers().join(",");
        let certificate_curve = if self.group == "secp256r1" { "" } else { ",secp256r1" };
        [format!("--ciphers={ciphers}"), format!("--groups={}{certificate_curve}", self.group)]
    }

    /// Refuses a cipher that the templates' programs do not have.
    pub(super) fn check_cipher(cipher: &str) -> Result<(), String> {
        if !CIPHERS.iter().any(|(name, _)| *name == cipher) {
            let names = CIPHERS.map(|(name, _)| name).join(", ");
            return Err(format!("there is no cipher {cipher:?}; there are {names}"));
        }
        Ok(())
    }

    /// Refuses a group that they do not have.
    pub(super) fn check_group(group: &str) -> Result<(), String> {
        if !GROUPS.contains(&group) {
            return Err(format!("there is no group {group:?}; there are {}", GROUPS.join(", ")));
        }
        Ok(())
    }
}
