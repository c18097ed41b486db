//! Certificates and sessions for the tests of this module.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};

use crate::tls::Certificate;

/// A session of rustls for no name, TLS 1.3 and a suite, as far as it is looked at.
pub(super) const SESSION: &[u8] = &[0, 3, 4, 0x13, 1, 0, 0, 0];

#[derive(Clone, Copy, Debug)]
pub(super) enum TestKey {
    P256,
    P384,
    Ed25519,
    Rsa,
}

impl TestKey {
    fn algorithm(self) -> &'static SignatureAlgorithm {
        match self {
            Self::P256 => &rcgen::PKCS_ECDSA_P256_SHA256,
            Self::P384 => &rcgen::PKCS_ECDSA_P384_SHA384,
            Self::Ed25519 => &rcgen::PKCS_ED25519,
            Self::Rsa => &rcgen::PKCS_RSA_SHA256,
        }
    }
}

/// Writes `NAME.pem` and `NAME.key` into `folder`.
pub(super) fn write(folder: &Path, name: &str, key: TestKey, names: &[&str]) -> (PathBuf, PathBuf) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let pair = KeyPair::generate_for(key.algorithm()).unwrap();
    let made = CertificateParams::new(names).unwrap().self_signed(&pair).unwrap();
    let (cert, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    std::fs::write(&cert, made.pem()).unwrap();
    std::fs::write(&key, pair.serialize_pem()).unwrap();
    (cert, key)
}

pub(super) fn certificate(key: TestKey, names: &[&str]) -> Certificate {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = write(folder.path(), "one", key, names);
    Certificate::load(&cert, &key).unwrap()
}
