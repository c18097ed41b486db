//! What a certificate says: names, kind of key, validity.

use std::fmt::Write as _;

use aws_lc_rs::digest;
use telemetry::clean;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::{OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ED25519};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;
use x509_parser::x509::SubjectPublicKeyInfo;

/// Bytes of a fingerprint that are shown: enough to tell certificates apart, too few to trust one by.
const FINGERPRINT_BYTES: usize = 8;

/// What a certificate says of itself, and its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    /// Kind of key, such as `ECDSA P-256`, `RSA-2048` or `Ed25519`.
    pub(super) kind: String,
    /// DNS names of the subject (RFC 5280, 4.2.1.6), in lower case, as they stand.
    pub(super) names: Vec<String>,
    pub(super) not_before: Moment,
    pub(super) not_after: Moment,
    /// The beginning of its SHA-256, in hexadecimal.
    fingerprint: String,
}

/// An end of a validity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Seconds since 1970.
    pub(super) unix: i64,
    /// Its day in UTC, such as `2027-01-31`.
    pub(super) date: String,
}

impl Description {
    /// Reads a certificate in DER.
    pub(super) fn read(der: &[u8]) -> Result<Self, String> {
        let certificate = parse(der)?;
        let digest = digest::digest(&digest::SHA256, der);
        let fingerprint = digest.as_ref().iter().take(FINGERPRINT_BYTES);
        Ok(Self {
            kind: key_kind(certificate.public_key()),
            names: general_names(&certificate)
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                    _ => None,
                })
                .collect(),
            not_before: Moment::from(certificate.validity().not_before),
            not_after: Moment::from(certificate.validity().not_after),
            fingerprint: fingerprint.fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            }),
        })
    }

    /// One line: kind, first name and number of further ones, last day, fingerprint.
    pub(super) fn summary(&self) -> String {
        let name = self.names.first().map_or_else(|| "no name".to_owned(), |name| clean::text(name));
        let more = match self.names.len() {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let Self { kind, not_after, fingerprint, .. } = self;
        format!("{kind} for {name}{more} until {} sha256:{fingerprint}", not_after.date)
    }
}

/// Whom a certificate names, made printable: its common name, else the first of its other names.
pub(super) fn subject(der: &[u8]) -> String {
    let Ok(certificate) = parse(der) else { return String::new() };
    let common = certificate.subject().iter_common_name().find_map(|name| name.as_str().ok());
    let other = || {
        general_names(&certificate).find_map(|name| match name {
            GeneralName::DNSName(name) | GeneralName::RFC822Name(name) | GeneralName::URI(name) => {
                Some(*name)
            }
            _ => None,
        })
    };
    common.or_else(other).map(clean::text).unwrap_or_default()
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, String> {
    X509Certificate::from_der(der).map(|(_, certificate)| certificate).map_err(|error| error.to_string())
}

fn general_names<'a>(certificate: &'a X509Certificate<'_>) -> impl Iterator<Item = &'a GeneralName<'a>> {
    let extension = certificate.subject_alternative_name().ok().flatten();
    extension.into_iter().flat_map(|extension| &extension.value.general_names)
}

impl From<ASN1Time> for Moment {
    fn from(time: ASN1Time) -> Self {
        Self { unix: time.timestamp(), date: time.to_datetime().date().to_string() }
    }
}

fn key_kind(key: &SubjectPublicKeyInfo<'_>) -> String {
    let curve = || {
        let oid = key.algorithm.parameters.as_ref().and_then(|any| any.as_oid().ok());
        let curves = [(OID_EC_P256, "P-256"), (OID_NIST_EC_P384, "P-384"), (OID_NIST_EC_P521, "P-521")];
        curves.into_iter().find(|(curve, _)| Some(curve) == oid.as_ref()).map_or("?", |(_, name)| name)
    };
    match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => {
            let significant = rsa.modulus.iter().skip_while(|&&byte| byte == 0).count();
            format!("RSA-{}", significant * 8)
        }
        Ok(PublicKey::EC(_)) => format!("ECDSA {}", curve()),
        _ if key.algorithm.algorithm == OID_SIG_ED25519 => "Ed25519".into(),
        _ => "unknown".into(),
    }
}
