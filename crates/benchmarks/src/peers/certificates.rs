//! The certificates that all terminators share.

use std::fs;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};

use crate::Result;

/// The kind of a certificate's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateKey {
    /// ECDSA over P-256.
    Ecdsa,
    /// RSA of 2048 bits.
    Rsa,
}

/// A certificate of each kind, for `localhost`.
#[derive(Debug)]
pub struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    /// Writes them into `folder`.
    ///
    /// # Errors
    /// If they cannot be made or written.
    pub fn write(folder: &Path) -> Result<Self> {
        let made = Self { folder: folder.to_owned() };
        for key in [CertificateKey::Ecdsa, CertificateKey::Rsa] {
            let algorithm = match key {
                CertificateKey::Ecdsa => &rcgen::PKCS_ECDSA_P256_SHA256,
                CertificateKey::Rsa => &rcgen::PKCS_RSA_SHA256,
            };
            let pair = KeyPair::generate_for(algorithm)?;
            let names = ["localhost", "127.0.0.1"].map(str::to_owned);
            let certificate = CertificateParams::new(names)?.self_signed(&pair)?.pem();
            let secret = pair.serialize_pem();
            fs::write(made.chain(key), &certificate)?;
            fs::write(made.key(key), &secret)?;
            fs::write(made.both(key), certificate + &secret)?;
        }
        Ok(made)
    }

    /// The certificate, in PEM.
    pub fn chain(&self, key: CertificateKey) -> PathBuf {
        self.file(key, "crt")
    }

    /// Its private key, in PEM.
    pub fn key(&self, key: CertificateKey) -> PathBuf {
        self.file(key, "key")
    }

    /// Certificate and private key in one PEM file.
    pub fn both(&self, key: CertificateKey) -> PathBuf {
        self.file(key, "pem")
    }

    fn file(&self, key: CertificateKey, suffix: &str) -> PathBuf {
        self.folder.join(format!("{key:?}.{suffix}").to_lowercase())
    }
}
