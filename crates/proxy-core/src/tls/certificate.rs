//! The certificate and key that the proxy presents: loaded from PEM files, or generated in memory.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{Error as TlsError, InconsistentKeys, SignatureAlgorithm};

/// Largest PEM file that is read, in bytes; chains are a few kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A certificate chain with its private key.
#[derive(Clone)]
pub struct Certificate {
    certified: Arc<CertifiedKey>,
    kind: String,
    warnings: Vec<CertificateWarning>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not PEM, or is damaged.
    #[error("cannot make sense of {path}: {problem}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The certificate's file holds no certificate.
    #[error("there is no certificate in {0}; expected PEM with -----BEGIN CERTIFICATE-----")]
    NoCertificate(PathBuf),
    /// The key's file holds no private key.
    #[error("there is no private key in {0}; expected PEM with a PKCS#8, PKCS#1 or SEC1 key")]
    NoKey(PathBuf),
    /// The key is protected by a passphrase.
    #[error("the key in {0} is encrypted; decrypt it first (openssl pkey -in {0} -out PLAIN.key)")]
    EncryptedKey(PathBuf),
    /// The key is of a kind that cannot sign handshakes.
    #[error("cannot use the key in {path}: {problem}; expected ECDSA P-256, P-384 or P-521, RSA or Ed25519")]
    UnsupportedKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Certificate and key do not belong together.
    #[error("the key in {key} does not belong to the certificate in {cert}")]
    Mismatched {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// A certificate could not be generated.
    #[error("cannot generate a certificate for {names}: {problem}")]
    NotGenerated {
        /// The names asked for.
        names: String,
        /// What went wrong.
        problem: String,
    },
}

/// What a person should know about a certificate that is used all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CertificateWarning {
    /// Others than the owner may read the private key.
    #[error("the private key {path} is readable by others (mode {mode:04o}); chmod 600 {path}")]
    KeyExposed {
        /// The key's file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl Certificate {
    /// Loads a chain, leaf first, and its key (PKCS#8, PKCS#1 or SEC1) from PEM files.
    ///
    /// # Errors
    /// When a file cannot be read, holds nothing usable, or the two do not belong together.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, CertificateError> {
        let chain = read_chain(cert)?;
        let (key_der, mode) = read_key(key)?;
        let signer = any_supported_type(&key_der).map_err(|error| CertificateError::UnsupportedKey {
            path: key.to_owned(),
            problem: error.to_string(),
        })?;
        let certified = CertifiedKey::new(chain, signer);
        match certified.keys_match() {
            Ok(()) | Err(TlsError::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(TlsError::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                return Err(CertificateError::Mismatched { cert: cert.to_owned(), key: key.to_owned() });
            }
            Err(error) => {
                return Err(CertificateError::Malformed {
                    path: cert.to_owned(),
                    problem: error.to_string(),
                });
            }
        }
        let exposed = mode & 0o077 != 0;
        let warnings = exposed.then(|| CertificateWarning::KeyExposed { path: key.to_owned(), mode });
        Ok(Self::new(certified, warnings.into_iter().collect()))
    }

    /// Makes a self-signed ECDSA P-256 certificate in memory, for localhost, 127.0.0.1, `::1`, the host's name and
    /// `names`, which may be names or addresses.
    ///
    /// # Errors
    /// When a name is neither a DNS name nor an address, or the library of cryptography fails.
    pub fn generate(names: &[String]) -> Result<Self, CertificateError> {
        let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(Into::into).into();
        all.extend(host_name());
        all.extend_from_slice(names);
        all.sort();
        all.dedup();
        let failed = |problem: String| CertificateError::NotGenerated { names: all.join(", "), problem };
        let made =
            rcgen::generate_simple_self_signed(all.clone()).map_err(|error| failed(error.to_string()))?;
        let key =
            PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(|e| failed(e.to_owned()))?;
        let signer = any_supported_type(&key).map_err(|error| failed(error.to_string()))?;
        Ok(Self::new(CertifiedKey::new(vec![made.cert.der().clone()], signer), Vec::new()))
    }

    fn new(certified: CertifiedKey, warnings: Vec<CertificateWarning>) -> Self {
        let kind = key_kind(&*certified.key);
        Self { certified: Arc::new(certified), kind, warnings }
    }

    /// The kind of key, such as `ECDSA P-256`, `RSA-2048` or `Ed25519`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What a person should know about it.
    pub fn warnings(&self) -> &[CertificateWarning] {
        &self.warnings
    }

    /// The chain in DER, leaf first.
    pub fn chain_der(&self) -> impl Iterator<Item = &[u8]> {
        self.certified.cert.iter().map(AsRef::as_ref)
    }

    /// The certificate that names the server, in DER. Of a generated one it is also the root that a client needs
    /// in order to trust this proxy and nothing else.
    pub fn leaf_der(&self) -> &[u8] {
        self.certified.cert.first().expect("a certificate is never made of an empty chain")
    }

    pub(super) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }
}

impl fmt::Debug for Certificate {
    // By hand, so that the key can never show up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("kind", &self.kind).finish_non_exhaustive()
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let (text, _) = read(path)?;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| CertificateError::Malformed { path: path.to_owned(), problem: error.to_string() })?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate(path.to_owned()));
    }
    Ok(chain)
}

/// The key, and the permissions of its file.
fn read_key(path: &Path) -> Result<(PrivateKeyDer<'static>, u32), CertificateError> {
    let (text, mode) = read(path)?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|error| match error {
        pem::Error::NoItemsFound if contains(&text, b"-----BEGIN ENCRYPTED PRIVATE KEY-----") => {
            CertificateError::EncryptedKey(path.to_owned())
        }
        pem::Error::NoItemsFound => CertificateError::NoKey(path.to_owned()),
        error => CertificateError::Malformed { path: path.to_owned(), problem: error.to_string() },
    })?;
    // The old way of protecting a key keeps the label and says so in a header line.
    if contains(&text, b"Proc-Type: 4,ENCRYPTED") {
        return Err(CertificateError::EncryptedKey(path.to_owned()));
    }
    Ok((key, mode))
}

/// The contents of a file and its permissions, both of the same open file.
fn read(path: &Path) -> Result<(Vec<u8>, u32), CertificateError> {
    let unreadable = |source| CertificateError::Unreadable { path: path.to_owned(), source };
    let file = fs::File::open(path).map_err(unreadable)?;
    let mode = file.metadata().map_err(unreadable)?.permissions().mode() & 0o7777;
    let mut text = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(unreadable)?;
    Ok((text, mode))
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_owned();
    let is_dns =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    is_dns.then_some(name)
}

/// Names the kind of a key by its public half, a `SubjectPublicKeyInfo` (RFC 5280, 4.1.2.7).
fn key_kind(key: &dyn SigningKey) -> String {
    let public = key.public_key();
    let public = public.as_ref().map(AsRef::as_ref);
    match key.algorithm() {
        SignatureAlgorithm::RSA => match public.and_then(rsa_bits) {
            Some(bits) => format!("RSA-{bits}"),
            None => "RSA".into(),
        },
        SignatureAlgorithm::ECDSA => format!("ECDSA {}", public.map_or("?", curve)),
        SignatureAlgorithm::ED25519 => "Ed25519".into(),
        other => format!("{other:?}"),
    }
}

fn curve(public: &[u8]) -> &'static str {
    // Object identifiers of the named curves, RFC 5480, 2.1.1.1.
    const CURVES: [(&[u8], &str); 3] = [
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], "P-256"),
        (&[0x2b, 0x81, 0x04, 0x00, 0x22], "P-384"),
        (&[0x2b, 0x81, 0x04, 0x00, 0x23], "P-521"),
    ];
    CURVES.iter().find(|(oid, _)| contains(public, oid)).map_or("?", |(_, name)| name)
}

/// Length of the modulus: `SEQUENCE { SEQUENCE algorithm, BIT STRING { SEQUENCE { INTEGER modulus, … } } }`.
fn rsa_bits(public: &[u8]) -> Option<usize> {
    let (info, _) = der_value(public)?;
    let (_, after_algorithm) = der_value(info)?;
    let (bit_string, _) = der_value(after_algorithm)?;
    let (numbers, _) = der_value(bit_string.get(1..)?)?;
    let (modulus, _) = der_value(numbers)?;
    let significant = modulus.iter().position(|&byte| byte != 0)?;
    Some((modulus.len() - significant) * 8 - modulus[significant].leading_zeros() as usize)
}

/// The contents of the first DER element, and what follows it.
fn der_value(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&short, mut rest) = der.get(1..)?.split_first()?;
    let mut length = usize::from(short);
    if short & 0x80 != 0 {
        let (bytes, after) = rest.split_at_checked(usize::from(short & 0x7f))?;
        length =
            bytes.iter().try_fold(0_usize, |sum, &byte| sum.checked_mul(256)?.checked_add(byte.into()))?;
        rest = after;
    }
    rest.split_at_checked(length)
}
