//! The certificate that all targets of a run get.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};

use crate::scenario::{CertificatePaths, KeyKind};

/// The name in it, which the generator asks for.
pub(super) const SERVER_NAME: &str = "localhost";

/// A certificate in files.
#[derive(Debug)]
pub(super) struct CertificateFiles {
    /// The certificate, in PEM.
    pub(super) chain: PathBuf,
    /// Its private key, in PEM.
    pub(super) key: PathBuf,
    /// Both in one file.
    pub(super) both: PathBuf,
}

impl CertificateFiles {
    /// Makes a self-signed one and writes it into `folder`.
    ///
    /// # Errors
    /// If it cannot be made or written.
    pub(super) fn write(folder: &Path, kind: KeyKind) -> io::Result<Self> {
        let algorithm = match kind {
            KeyKind::Ecdsa => &rcgen::PKCS_ECDSA_P256_SHA256,
            // 2,048 bits.
            KeyKind::Rsa => &rcgen::PKCS_RSA_SHA256,
        };
        let pair = KeyPair::generate_for(algorithm).map_err(io::Error::other)?;
        let names = [SERVER_NAME, "127.0.0.1"].map(str::to_owned);
        let signed = CertificateParams::new(names).and_then(|params| params.self_signed(&pair));
        Self::write_pem(folder, &signed.map_err(io::Error::other)?.pem(), &pair.serialize_pem())
    }

    /// Copies the user's into `folder`.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub(super) fn copy(folder: &Path, paths: &CertificatePaths) -> io::Result<Self> {
        let read = |path: &Path| {
            let named =
                |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            fs::read_to_string(path).map_err(named)
        };
        Self::write_pem(folder, &read(&paths.cert)?, &read(&paths.key)?)
    }

    fn write_pem(folder: &Path, certificate: &str, secret: &str) -> io::Result<Self> {
        let written = Self {
            chain: folder.join("cert.pem"),
            key: folder.join("key.pem"),
            both: folder.join("both.pem"),
        };
        fs::write(&written.chain, certificate)?;
        write_secret(&written.key, secret)?;
        write_secret(&written.both, &format!("{}\n{secret}", certificate.trim_end()))?;
        Ok(written)
    }
}

/// Writes a file that only its owner may read.
fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}
