//! Lists of revoked certificates (CRLs; RFC 5280, 5) of the authorities that vouch for clients.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;
use records::text::quantity::counted;
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateRevocationListDer, Der, TrustAnchor};
use rustls::server::WebPkiClientVerifier;
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::OID_X509_EXT_ISSUER_DISTRIBUTION_POINT;
use x509_parser::prelude::FromDer as _;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::tls::certificates::authorities::Authorities;
use crate::tls::certificates::error::{TlsFileError, TlsFileWarning};
use crate::tls::certificates::files::{self, FileOrigin, FromFiles, contains};
use crate::tls::certificates::identity;
use crate::tls::clock::unix_now;
use crate::tls::settings::CrlExpired;

/// How long before its end a list is warned of.
const WARNED_SECONDS: u64 = 7 * 86_400;

/// Lists of revoked certificates. Clones share them.
#[derive(Clone, Debug)]
pub struct RevocationLists {
    lists: Arc<[RevocationList]>,
    origin: FileOrigin,
}

#[derive(Debug)]
struct RevocationList {
    der: CertificateRevocationListDer<'static>,
    path: PathBuf,
    /// The authority's name in DER, and in words.
    issuer: Box<[u8]>,
    issuer_name: String,
    /// The certificates that it is for (RFC 5280, 5.2.5); empty: all of its issuer.
    scope: Box<[u8]>,
    /// Serial numbers as in certificates.
    revoked: HashSet<Box<[u8]>>,
    /// When the next list is due, in seconds since 1970, and its day.
    ends_at: u64,
    end_date: String,
}

impl RevocationLists {
    /// Loads lists in PEM, of which a file may hold several, or DER.
    ///
    /// # Errors
    /// If a file cannot be read or used, or two lists are for the same certificates.
    pub fn load(paths: &[PathBuf]) -> Result<Self, TlsFileError> {
        let origin = FileOrigin::of(&paths.iter().map(PathBuf::as_path).collect::<Vec<_>>());
        let mut lists: Vec<RevocationList> = Vec::new();
        for path in paths {
            for der in read(path)? {
                let list = RevocationList::parse(path, der)
                    .map_err(|problem| TlsFileError::malformed(path, problem))?;
                // Only the first would be used.
                if let Some(same) = lists.iter().find(|one| one.is_for_same(&list)) {
                    let (issuer, former) = (&list.issuer_name, same.path.display());
                    let problem = format!("{former} has a list of {issuer:?} too; keep the later one");
                    return Err(TlsFileError::malformed(path, problem));
                }
                lists.push(list);
            }
        }
        Ok(Self { lists: lists.into(), origin })
    }

    /// The lists, in DER.
    pub(in crate::tls) fn ders(&self) -> impl Iterator<Item = CertificateRevocationListDer<'static>> {
        self.lists.iter().map(|list| list.der.clone())
    }

    /// What each list is for, in order: its issuer and its certificates, in DER, and whether an authority of `ca` has
    /// signed it.
    pub(in crate::tls) fn scopes(&self, ca: Option<&Authorities>) -> Vec<(&[u8], &[u8], bool)> {
        let is_signed = |list: &RevocationList| ca.is_some_and(|ca| ca.has_signed(&list.issuer, &list.der));
        let mut scopes: Vec<_> =
            self.lists.iter().map(|list| (&*list.issuer, &*list.scope, is_signed(list))).collect();
        scopes.sort_unstable();
        scopes
    }

    /// Warnings about lists that have ended or end soon, and about those that no authority of `ca` has issued.
    pub fn warnings(&self, ca: &Authorities) -> impl Iterator<Item = TlsFileWarning> {
        let now = unix_now();
        self.lists.iter().flat_map(move |list| {
            let (path, issuer) = (list.path.clone(), list.issuer_name.clone());
            let unknown = (!ca.has_subject(&list.issuer))
                .then(|| TlsFileWarning::CrlOfOther { path: path.clone(), issuer: issuer.clone() });
            let date = list.end_date.clone();
            let ends = match list.ends_at {
                end if end <= now => Some(TlsFileWarning::CrlExpired { path, issuer, date }),
                end if end <= now + WARNED_SECONDS => Some(TlsFileWarning::CrlExpires { path, issuer, date }),
                _ => None,
            };
            unknown.into_iter().chain(ends)
        })
    }

    /// One line: how many certificates are revoked by how many lists, when the first list ends, and a fingerprint.
    pub(in crate::tls) fn summary(&self) -> String {
        let revoked: usize = self.lists.iter().map(|list| list.revoked.len()).sum();
        let revoked = counted(revoked as u64, "certificate");
        let lists = counted(self.lists.len() as u64, "list");
        let first = self.lists.iter().min_by_key(|list| list.ends_at);
        let (end, issuer) = first.map_or(("", ""), |list| (&list.end_date, &list.issuer_name));
        let mut all = digest::Context::new(&digest::SHA256);
        self.lists.iter().for_each(|list| all.update(&list.der));
        let digest = all.finish();
        let digest = u64::from_be_bytes(digest.as_ref().first_chunk().copied().unwrap_or_default());
        format!("{revoked} revoked by {lists} until {end} ({issuer}), together sha256:{digest:016x}")
    }
}

impl FromFiles for RevocationLists {
    fn origin(&self) -> Option<&FileOrigin> {
        Some(&self.origin)
    }

    fn read_again(&self) -> Result<Self, TlsFileError> {
        Self::load(self.origin.paths())
    }
}

impl RevocationList {
    /// # Errors
    /// What the problem is.
    fn parse(path: &Path, der: CertificateRevocationListDer<'static>) -> Result<Self, String> {
        let (rest, list) = CertificateRevocationList::from_der(&der).map_err(|error| error.to_string())?;
        if !rest.is_empty() {
            return Err("something follows the list".to_owned());
        }
        let end = list.next_update().ok_or("the list does not say when the next one is due (nextUpdate)")?;
        let scope = list.extensions().iter().find(|one| one.oid == OID_X509_EXT_ISSUER_DISTRIBUTION_POINT);
        let parsed = Self {
            path: path.to_owned(),
            issuer: list.issuer().as_raw().into(),
            issuer_name: identity::issuer_name(list.issuer()),
            scope: scope.map(|extension| extension.value.into()).unwrap_or_default(),
            revoked: list.iter_revoked_certificates().map(|one| one.raw_serial().into()).collect(),
            ends_at: end.timestamp().max(0).cast_unsigned(),
            end_date: end.to_datetime().date().to_string(),
            der: der.clone(),
        };
        check_support(der).map(|()| parsed)
    }

    fn is_for_same(&self, other: &Self) -> bool {
        (&self.issuer, &self.scope) == (&other.issuer, &other.scope)
    }
}

/// Whether rustls can use a list. Only a verifier says so, which needs an authority: any will do.
fn check_support(der: CertificateRevocationListDer<'static>) -> Result<(), String> {
    let none = || Der::from_slice(&[]);
    let anchor = TrustAnchor { subject: none(), subject_public_key_info: none(), name_constraints: None };
    let roots = Arc::new(RootCertStore { roots: vec![anchor] });
    let builder = WebPkiClientVerifier::builder_with_provider(roots, Arc::new(default_provider()));
    builder.with_crls([der]).build().map(drop).map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsFileError> {
    let bytes = files::read(path)?.bytes;
    if bytes[0] == 0x30 && !contains(&bytes, b"-----BEGIN") {
        return Ok(vec![bytes.to_vec().into()]);
    }
    let lists = CertificateRevocationListDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let lists = lists.map_err(|error| TlsFileError::malformed_pem(path, &error))?;
    if lists.is_empty() {
        let problem = "there is no revocation list; expected -----BEGIN X509 CRL-----, or DER";
        return Err(TlsFileError::malformed(path, problem.to_owned()));
    }
    Ok(lists)
}

/// Lists, and what holds once one of them has ended.
#[derive(Clone, Debug)]
pub(in crate::tls) struct Revocation {
    pub(in crate::tls) lists: RevocationLists,
    pub(in crate::tls) expired: CrlExpired,
}

impl Revocation {
    /// Whether a certificate that was verified before may be no longer: it is revoked by now, or its list has ended.
    /// `now` is in seconds since 1970.
    pub(in crate::tls) fn bars(&self, certificate: &[u8], now: u64) -> bool {
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return true };
        let issuer = certificate.issuer().as_raw();
        let mut of_issuer = self.lists.lists.iter().filter(|list| *list.issuer == *issuer);
        of_issuer.any(|list| {
            let has_ended = self.expired == CrlExpired::Refuse && list.ends_at <= now;
            has_ended || list.revoked.contains(certificate.raw_serial())
        })
    }
}
