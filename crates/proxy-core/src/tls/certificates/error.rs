//! Errors and warnings about files of certificates and keys.

use std::io;
use std::path::{Path, PathBuf};

use records::text::clean;
use rustls::pki_types::pem;

use crate::notices::is_shortage;

/// Why a certificate, an authority or a ticket key is missing.
#[derive(Debug, thiserror::Error)]
pub enum TlsFileError {
    #[error("cannot read {path}: {}", reason(source))]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{0} is empty")]
    Empty(PathBuf),
    /// A file is DER where PEM is needed.
    #[error(
        "{0} is DER, expected PEM; convert it (a certificate: openssl x509 -inform DER -in {0} -out NEW.pem; a key: openssl pkey -inform DER -in {0} -out NEW.key)"
    )]
    NotPem(PathBuf),
    /// A file has the wrong content, or is damaged.
    #[error("cannot parse {path}: {problem}")]
    Malformed { path: PathBuf, problem: String },
    #[error("there is no certificate in {0}; expected PEM with -----BEGIN CERTIFICATE-----")]
    NoCertificate(PathBuf),
    #[error("there is no private key in {0}; expected PEM with a PKCS#8, PKCS#1 or SEC1 key")]
    NoKey(PathBuf),
    #[error("the key in {0} is encrypted; decrypt it first (openssl pkey -in {0} -out PLAIN.key)")]
    EncryptedKey(PathBuf),
    /// The key is of a kind that cannot sign handshakes.
    #[error("cannot use the key in {path}: {problem}; expected ECDSA P-256, P-384 or P-521, RSA or Ed25519")]
    UnsupportedKey { path: PathBuf, problem: String },
    #[error("the key in {key} does not belong to the certificate in {cert}")]
    Mismatched { cert: PathBuf, key: PathBuf },
    #[error("cannot generate a certificate for {names}: {problem}")]
    NotGenerated { names: String, problem: String },
}

/// Why a file cannot be read, and remedies for the usual reasons.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file; is the path right?".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "permission denied; let the user of the proxy read it, or pass it with LoadCredential=".to_owned()
        }
        _ => error.to_string(),
    }
}

impl TlsFileError {
    /// Whether the cause is not the file: the process or the system is short of descriptors or memory.
    pub(in crate::tls) fn is_shortage(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if is_shortage(source))
    }

    pub(in crate::tls) fn is_missing(&self) -> bool {
        matches!(self, Self::Unreadable { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    pub(in crate::tls) fn not_regular(path: &Path) -> Self {
        Self::Unreadable { path: path.to_owned(), source: io::Error::other("it is not a regular file") }
    }

    pub(in crate::tls) fn malformed(path: &Path, problem: String) -> Self {
        Self::Malformed { path: path.to_owned(), problem }
    }

    /// The texts of the library list bytes as numbers, of a line also those of a key in it.
    pub(in crate::tls) fn malformed_pem(path: &Path, error: &pem::Error) -> Self {
        let problem = match error {
            pem::Error::MissingSectionEnd { end_marker } => {
                let label = clean::text(&String::from_utf8_lossy(end_marker));
                format!("the file ends before -----END {label}-----, and may be incomplete")
            }
            pem::Error::IllegalSectionStart { .. } => {
                "a line that begins with -----BEGIN does not end with -----".to_owned()
            }
            error => error.to_string(),
        };
        Self::malformed(path, problem)
    }
}

/// A warning about a file that is used nevertheless.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsFileWarning {
    /// Users other than the owner may read a secret.
    #[error("the secret key in {path} is readable by others (mode {mode:04o}); chmod 600 {path}")]
    Exposed {
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The certificate is of a version before 3.
    #[error(
        "the certificate in {path} is X.509 version {version}, which has no DNS names: browsers, tlsdash load and others \
         refuse it; issue it with extensions (openssl x509 -req … -extfile FILE)"
    )]
    OldVersion { path: PathBuf, version: u32 },
    /// A certificate has been ordered.
    #[error("there is no certificate in {path} yet: clients get {present}")]
    Awaited { path: PathBuf, present: String },
    #[error("{path}: {fault}; some clients will refuse it")]
    Chain { path: PathBuf, fault: String },
    #[error("the OCSP response in {path} is not stapled: {problem}")]
    NotStapled { path: PathBuf, problem: String },
    #[error("the certificate in {path} has expired on {date}; clients will refuse it")]
    Expired {
        path: PathBuf,
        /// The last day of its validity, in UTC.
        date: String,
    },
    #[error(
        "the revocation list of {issuer:?} in {path} has expired on {date}: clients with certificates of this authority are \
         refused, unless --client-crl-expired is accept"
    )]
    CrlExpired { path: PathBuf, issuer: String, date: String },
    #[error("the revocation list of {issuer:?} in {path} expires on {date}; replace it with the next one")]
    CrlExpires { path: PathBuf, issuer: String, date: String },
    /// No authority for clients has issued a revocation list.
    #[error(
        "the revocation list in {path} is of {issuer:?}, which is not in --client-ca: it is for certificates only whose clients \
         send that authority as an intermediate"
    )]
    CrlOfOther { path: PathBuf, issuer: String },
    #[error("the certificate in {path} is not valid before {date}; clients will refuse it until then")]
    NotYetValid {
        path: PathBuf,
        /// The first day of its validity, in UTC.
        date: String,
    },
}
