//! The certificate and key that the proxy presents: loaded from PEM files, or generated in memory.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{CertificateParams, DnType, KeyPair};
use records::text::clean;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use crate::tls::certificates::chain;
use crate::tls::certificates::description::{Description, ParseError, ValidityEnd};
use crate::tls::certificates::error::{TlsFileError, TlsFileWarning};
use crate::tls::certificates::files::{self, FileContents, FileOrigin, FromFiles, contains};
use crate::tls::certificates::ocsp::response_file;
use crate::tls::certificates::served::CertificateUse;
use crate::tls::clock::unix_now;
use crate::tls::provider::time_signatures;

/// The text for the names of a certificate that has none.
const NO_NAME: &str = "no name";
/// The subject and issuer of a certificate that is made in memory.
const MADE_HERE: &str = "tlsdash, self-signed";
const DAY: Duration = Duration::from_secs(86_400);

/// A certificate chain with its private key.
#[derive(Clone)]
pub struct Certificate {
    pub(super) certified: Arc<CertifiedKey>,
    pub(super) description: Description,
    /// What clients may object to in the chain.
    pub(super) faults: Vec<String>,
    pub(super) usage: Arc<CertificateUse>,
    /// When the stapled OCSP response ends, in seconds since 1970; 0 if none is stapled.
    pub(super) stapled_until: u64,
    pub(super) warnings: Vec<TlsFileWarning>,
    origin: Option<FileOrigin>,
}

impl Certificate {
    /// Loads a chain, leaf first, and its key (PKCS#8, PKCS#1 or SEC1) from PEM files, and the OCSP response in
    /// `CERT.ocsp` if there is one.
    ///
    /// # Errors
    /// When a file cannot be read, holds nothing usable, or the two do not belong together.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsFileError> {
        Self::load_after(cert, key, None)
    }

    fn load_after(cert: &Path, key: &Path, former: Option<&Self>) -> Result<Self, TlsFileError> {
        let origin = origin(cert, key);
        let chain = read_chain(cert)?;
        let (key_der, exposure) = read_key(key)?;
        let signer = any_supported_type(&key_der).map_err(|error| TlsFileError::UnsupportedKey {
            path: key.to_owned(),
            problem: error.to_string(),
        })?;
        let made = Self::new(CertifiedKey::new(chain, signer))
            .map_err(|_| TlsFileError::malformed(cert, "the first certificate is damaged".to_owned()))?;
        // rustls compares them too, but only in certificates that it would verify: not in those of version 1 or with a
        // critical extension that it does not know. A client may accept both.
        if made.certified.key.public_key().is_some_and(|of_key| *of_key != *made.description.public_key) {
            return Err(TlsFileError::Mismatched { cert: cert.to_owned(), key: key.to_owned() });
        }
        let faulty = made
            .faults
            .iter()
            .map(|fault| TlsFileWarning::Chain { path: cert.to_owned(), fault: fault.clone() });
        let warnings =
            exposure.into_iter().chain(made.validity_warning(cert)).chain(made.version_warning(cert));
        let warnings = warnings.chain(faulty).collect();
        Self { warnings, origin: Some(origin), ..made }.staple(cert, former)
    }

    /// Makes a self-signed ECDSA P-256 certificate in memory, for localhost, 127.0.0.1, `::1`, the host's name and
    /// `names`, which may be names or addresses.
    ///
    /// # Errors
    /// When a name is neither a DNS name nor an address, or the library of cryptography fails.
    pub fn generate(names: &[String]) -> Result<Self, TlsFileError> {
        let mut all: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(Into::into).into();
        all.extend(host_name());
        all.extend_from_slice(names);
        all.sort();
        all.dedup();
        let failed = |problem: String| TlsFileError::NotGenerated { names: all.join(", "), problem };
        let (cert, pair) = self_signed(all.clone()).map_err(|error| failed(error.to_string()))?;
        let key = PrivateKeyDer::try_from(pair.serialize_der()).map_err(|e| failed(e.to_owned()))?;
        let signer = any_supported_type(&Zeroizing::new(key)).map_err(|error| failed(error.to_string()))?;
        let certified = CertifiedKey::new(vec![cert.der().clone()], signer);
        Self::new(certified).map_err(|error| failed(error.to_string()))
    }

    /// Uses it until there is a certificate in another file, which has its key too. `present` says which one clients get
    /// until then.
    #[must_use]
    pub fn standing_in(self, file: &Path, present: String) -> Self {
        let warning = TlsFileWarning::Awaited { path: file.to_owned(), present };
        Self { origin: Some(origin(file, file)), warnings: vec![warning], ..self }
    }

    fn new(certified: CertifiedKey) -> Result<Self, ParseError> {
        let leaf = certified.cert.first().expect("a certificate is never made of an empty chain");
        let description = Description::read(leaf)?;
        let faults = chain::faults(&certified.cert);
        let label = description.names.first().map_or_else(|| NO_NAME.to_owned(), |name| clean::text(name));
        let usage = Arc::new(CertificateUse::new(label.into()));
        let certified = Arc::new(time_signatures(certified));
        Ok(Self {
            certified,
            description,
            faults,
            usage,
            stapled_until: 0,
            warnings: Vec::new(),
            origin: None,
        })
    }

    /// The key type, such as `ECDSA P-256`, `RSA-2048` or `Ed25519`.
    pub fn kind(&self) -> &str {
        &self.description.kind
    }

    /// The DNS names of the certificate, in lower case; a wildcard is written `*.example.org`.
    pub fn names(&self) -> &[String] {
        &self.description.names
    }

    /// A description in one line: key type, names, last day, beginning of its SHA-256 fingerprint.
    pub fn summary(&self) -> String {
        self.description.summary()
    }

    pub fn warnings(&self) -> &[TlsFileWarning] {
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

    pub(in crate::tls) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }

    fn version_warning(&self, path: &Path) -> Option<TlsFileWarning> {
        let version = self.description.version;
        (version < 3).then(|| TlsFileWarning::OldVersion { path: path.to_owned(), version })
    }

    fn validity_warning(&self, path: &Path) -> Option<TlsFileWarning> {
        let now = unix_now() as i64;
        let Description { not_before, not_after, .. } = &self.description;
        let (path, date) = (path.to_owned(), |moment: &ValidityEnd| moment.date.clone());
        if now > not_after.unix {
            Some(TlsFileWarning::Expired { path, date: date(not_after) })
        } else if now < not_before.unix {
            Some(TlsFileWarning::NotYetValid { path, date: date(not_before) })
        } else {
            None
        }
    }
}

impl FromFiles for Certificate {
    fn origin(&self) -> Option<&FileOrigin> {
        self.origin.as_ref()
    }

    fn read_again(&self) -> Result<Self, TlsFileError> {
        match self.origin.as_ref().map(FileOrigin::paths) {
            Some([cert, key, ..]) => Self::load_after(cert, key, Some(self)),
            _ => Ok(self.clone()),
        }
    }
}

impl fmt::Debug for Certificate {
    // By hand, so the key can never appear.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("kind", &self.description.kind).finish_non_exhaustive()
    }
}

fn origin(cert: &Path, key: &Path) -> FileOrigin {
    FileOrigin::of(&[cert, key, &response_file(cert)])
}

/// Reads certificates in PEM; at least one.
pub(in crate::tls) fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    let text = files::read_pem(path)?.bytes;
    let chain = CertificateDer::pem_slice_iter(&text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsFileError::malformed_pem(path, &error))?;
    if chain.is_empty() {
        return Err(TlsFileError::NoCertificate(path.to_owned()));
    }
    Ok(chain)
}

type Key = Zeroizing<PrivateKeyDer<'static>>;

fn read_key(path: &Path) -> Result<(Key, Option<TlsFileWarning>), TlsFileError> {
    let contents: FileContents = files::read_pem(path)?;
    let text = &contents.bytes;
    let key = PrivateKeyDer::from_pem_slice(text).map_err(|error| match error {
        // The traditional format of an encrypted key keeps the label of others and has a header.
        _ if contains(text, b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
            || contains(text, b"Proc-Type: 4,ENCRYPTED") =>
        {
            TlsFileError::EncryptedKey(path.to_owned())
        }
        pem::Error::NoItemsFound => TlsFileError::NoKey(path.to_owned()),
        error => TlsFileError::malformed_pem(path, &error),
    })?;
    Ok((Zeroizing::new(key), contents.exposure(path)))
}

/// A certificate for these names, valid from a day ago, as clocks differ, and for ten years.
fn self_signed(names: Vec<String>) -> Result<(rcgen::Certificate, KeyPair), rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, MADE_HERE);
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = rcgen::date_time_ymd(1970, 1, 1) + since_epoch;
    (params.not_before, params.not_after) = (now - DAY, now + 3652 * DAY);
    let pair = KeyPair::generate()?;
    Ok((params.self_signed(&pair)?, pair))
}

fn host_name() -> Option<String> {
    let name = rustix::system::uname().nodename().to_str().ok()?.to_owned();
    let is_dns =
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'));
    is_dns.then_some(name)
}
