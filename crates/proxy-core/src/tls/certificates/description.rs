//! A certificate's description: names, key type, validity.

use std::fmt::Write as _;

use aws_lc_rs::digest;
use records::text::clean;
use x509_parser::asn1_rs::{Oid, Tag, oid};
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::extensions::GeneralName;
use x509_parser::nom;
use x509_parser::oid_registry::{OID_EC_P256, OID_NIST_EC_P384, OID_NIST_EC_P521, OID_SIG_ED25519};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;
use x509_parser::x509::{AttributeTypeAndValue, SubjectPublicKeyInfo};

use crate::accept::proxy_protocol::COMMON_NAME_BYTES_MAX;
use crate::tls::certificates::chain;

/// Shown bytes of a fingerprint: enough to distinguish certificates, too few to trust one.
const FINGERPRINT_BYTES: usize = 8;
/// Bytes of a serial number (RFC 5280, 4.1.2.2).
const SERIAL_BYTES_MAX: usize = 20;
/// The extension of the TLS features (RFC 7633, 6).
const TLS_FEATURE: Oid<'static> = oid!(1.3.6.1.5.5.7.1.24);

pub(in crate::tls) type ParseError = nom::Err<X509Error>;

/// The contents of a certificate that are shown, and its fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tls) struct Description {
    /// The version of X.509, 1 to 3.
    pub(in crate::tls) version: u32,
    /// The key in DER (RFC 5280, 4.1.2.7).
    pub(in crate::tls) public_key: Box<[u8]>,
    /// The key type, such as `ECDSA P-256`, `RSA-2048` or `Ed25519`.
    pub(in crate::tls) kind: String,
    /// DNS names of the subject (RFC 5280, 4.2.1.6), in lower case, otherwise unchanged.
    pub(in crate::tls) names: Vec<String>,
    pub(in crate::tls) not_before: ValidityEnd,
    pub(in crate::tls) not_after: ValidityEnd,
    pub(in crate::tls) issuer: String,
    /// The serial number, in hexadecimal.
    pub(in crate::tls) serial: String,
    /// Whether it demands a stapled OCSP response (RFC 7633).
    pub(in crate::tls) must_staple: bool,
    /// The beginning of its SHA-256, in hexadecimal.
    pub(in crate::tls) fingerprint: String,
}

/// The start or end of a validity period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::tls) struct ValidityEnd {
    /// Seconds since 1970.
    pub(in crate::tls) unix: i64,
    /// Its day in UTC, such as `2027-01-31`.
    pub(in crate::tls) date: String,
}

impl Description {
    /// Reads a certificate in DER.
    pub(in crate::tls) fn read(der: &[u8]) -> Result<Self, ParseError> {
        let certificate = parse(der)?;
        let digest = digest::digest(&digest::SHA256, der);
        Ok(Self {
            version: certificate.version().0 + 1,
            public_key: certificate.public_key().raw.into(),
            kind: key_kind(certificate.public_key()),
            names: general_names(&certificate)
                .filter_map(|name| match name {
                    GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                    _ => None,
                })
                .collect(),
            not_before: ValidityEnd::from(certificate.validity().not_before),
            not_after: ValidityEnd::from(certificate.validity().not_after),
            issuer: chain::name(certificate.issuer()),
            serial: hex(certificate.raw_serial(), SERIAL_BYTES_MAX),
            must_staple: must_staple(&certificate),
            fingerprint: hex(digest.as_ref(), FINGERPRINT_BYTES),
        })
    }

    /// One line: kind, first name and number of further ones, last day, fingerprint.
    pub(in crate::tls) fn summary(&self) -> String {
        let name = self.names.first().map_or_else(|| "no name".to_owned(), |name| clean::text(name));
        let more = match self.names.len() {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let Self { kind, not_after, fingerprint, .. } = self;
        format!("{kind} for {name}{more} until {} sha256:{fingerprint}", not_after.date)
    }
}

/// Bytes that a server presented are not a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what the server presented is not a certificate")]
pub struct NoCertificate;

/// A chain in DER as one line: the first certificate, and how many there are.
///
/// # Errors
/// When there is none, or the first cannot be read.
pub fn describe_chain(chain: &[Vec<u8>]) -> Result<String, NoCertificate> {
    let first = chain.first().ok_or(NoCertificate)?;
    let description = Description::read(first).map_err(|_| NoCertificate)?;
    let others = if chain.len() == 1 { "no chain".to_owned() } else { format!("chain of {}", chain.len()) };
    Ok(format!("{} ({others})", description.summary()))
}

/// Why the common name of a certificate cannot be passed on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommonNameError {
    #[error("the common name \"{0}\" holds control characters")]
    Control(String),
    #[error("the common name has {0} bytes, more than a PROXY header has room for")]
    TooLong(usize),
    #[error("the subject has {0} common names")]
    Several(usize),
    #[error("the common name is not text of a known encoding")]
    Encoding,
}

/// The common name of a certificate's subject, whole and unchanged, if it has one.
///
/// # Errors
/// If it has one that cannot be forwarded unchanged.
pub(in crate::tls) fn common_name(der: &[u8]) -> Result<Option<String>, CommonNameError> {
    let Ok(certificate) = parse(der) else { return Ok(None) };
    let names: Vec<_> = certificate.subject().iter_common_name().collect();
    let name = match names[..] {
        [] => return Ok(None),
        [name] => text_of(name).ok_or(CommonNameError::Encoding)?,
        _ => return Err(CommonNameError::Several(names.len())),
    };
    if name.contains(char::is_control) {
        return Err(CommonNameError::Control(clean::text(&name)));
    }
    if name.len() > COMMON_NAME_BYTES_MAX {
        return Err(CommonNameError::TooLong(name.len()));
    }
    Ok(Some(name).filter(|name| !name.is_empty()))
}

/// An attribute's text (X.520, `DirectoryString`). Teletex characters beyond ASCII have no agreed meaning.
fn text_of(attribute: &AttributeTypeAndValue<'_>) -> Option<String> {
    let bytes = attribute.as_slice();
    match attribute.attr_value().tag() {
        Tag::BmpString => {
            let (pairs, rest) = bytes.as_chunks::<2>();
            let units = pairs.iter().map(|pair| u16::from_be_bytes(*pair));
            char::decode_utf16(units).collect::<Result<_, _>>().ok().filter(|_| rest.is_empty())
        }
        Tag::UniversalString => {
            let (quads, rest) = bytes.as_chunks::<4>();
            let chars = quads.iter().map(|quad| char::from_u32(u32::from_be_bytes(*quad)));
            chars.collect::<Option<_>>().filter(|_| rest.is_empty())
        }
        Tag::TeletexString => bytes.is_ascii().then(|| String::from_utf8_lossy(bytes).into_owned()),
        _ => attribute.as_str().ok().map(str::to_owned),
    }
}

/// The last second of a certificate's validity, since 1970; `None` if the bytes are no certificate.
pub(in crate::tls) fn last_second(der: &[u8]) -> Option<u64> {
    parse(der).ok().map(|certificate| certificate.validity().not_after.timestamp().max(0).cast_unsigned())
}

/// Whom a certificate names, made printable: its common name, else the first of its other names.
pub(in crate::tls) fn subject(der: &[u8]) -> String {
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

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, ParseError> {
    X509Certificate::from_der(der).map(|(_, certificate)| certificate)
}

fn general_names<'a>(certificate: &'a X509Certificate<'_>) -> impl Iterator<Item = &'a GeneralName<'a>> {
    let extension = certificate.subject_alternative_name().ok().flatten();
    extension.into_iter().flat_map(|extension| &extension.value.general_names)
}

impl From<ASN1Time> for ValidityEnd {
    fn from(time: ASN1Time) -> Self {
        Self { unix: time.timestamp(), date: time.to_datetime().date().to_string() }
    }
}

fn hex(bytes: &[u8], most: usize) -> String {
    bytes.iter().take(most).fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Whether the TLS features (RFC 7633) name `status_request`, as the integer 5.
fn must_staple(certificate: &X509Certificate<'_>) -> bool {
    let feature = certificate.extensions().iter().find(|extension| extension.oid == TLS_FEATURE);
    feature.is_some_and(|feature| feature.value.windows(3).any(|integer| integer == [2, 1, 5]))
}

pub(in crate::tls) fn key_kind(key: &SubjectPublicKeyInfo<'_>) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::string::{TeletexString, UniversalString};
    use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair};

    /// A certificate whose subject has these common names.
    fn certificate(names: Vec<DnValue>) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["other.name".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        // The first under its own type, further ones under a custom type with its number, because rcgen accepts each
        // type once.
        let kinds = [DnType::CommonName, DnType::CustomDnType(vec![2, 5, 4, 3])];
        for (kind, name) in kinds.into_iter().zip(names) {
            params.distinguished_name.push(kind, name);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn of(name: impl Into<DnValue>) -> Result<Option<String>, CommonNameError> {
        common_name(&certificate(vec![name.into()]))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_common_name_is_given_as_it_stands_or_not_at_all(name in "(?s).{0,300}", printable in "\\PC{1,300}") {
            let told = of(name.as_str());
            if name.contains(char::is_control) {
                prop_assert!(matches!(told, Err(CommonNameError::Control(_))), "{:?}", told);
            } else {
                prop_assert_eq!(told, Ok(Some(name).filter(|name| !name.is_empty())));
            }
            prop_assert_eq!(of(printable.as_str()), Ok(Some(printable)));
        }

        #[test]
        fn hostile_bytes_name_nobody(bytes in prop::collection::vec(any::<u8>(), 0..500)) {
            prop_assert_eq!(common_name(&bytes), Ok(None));
        }
    }

    #[test]
    fn a_common_name_that_cannot_be_told_is_left_out() {
        assert_eq!(common_name(&certificate(Vec::new())), Ok(None), "another name is none");
        let several = certificate(vec!["one".into(), "two".into()]);
        assert_eq!(common_name(&several), Err(CommonNameError::Several(2)));
        let long = "x".repeat(COMMON_NAME_BYTES_MAX);
        assert_eq!(of(&*long), Ok(Some(long.clone())));
        assert_eq!(of(long + "x"), Err(CommonNameError::TooLong(COMMON_NAME_BYTES_MAX + 1)));
        let universal = UniversalString::try_from("工 Zoë").unwrap();
        assert_eq!(of(DnValue::UniversalString(universal)), Ok(Some("工 Zoë".to_owned())));
        let teletex = TeletexString::try_from("Zo\u{7e}").unwrap();
        assert_eq!(of(DnValue::TeletexString(teletex)), Ok(Some("Zo~".to_owned())));
        let error = of("a\nb").unwrap_err().to_string();
        assert!(error.contains("\\u{a}") && !error.contains('\n'), "{error}");
    }
}
