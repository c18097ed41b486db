//! OCSP responses (RFC 6960) that are stapled to certificates: read from a file beside, checked, and dropped when they end.

use std::ffi::OsString;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::pki_types::CertificateDer;
use x509_parser::asn1_rs::{Any, BitString, Class, DerParser, Error, Oid, SequenceIterator, Tag, oid};
use x509_parser::certificate::X509Certificate;
use x509_parser::error::X509Error;
use x509_parser::nom;
use x509_parser::oid_registry::{OID_HASH_SHA1, OID_NIST_HASH_SHA256};
use x509_parser::prelude::FromDer as _;

use crate::tls::Certificate;
use crate::tls::certificates::chain::has_signed;
use crate::tls::certificates::error::{TlsFileError, TlsFileWarning};
use crate::tls::certificates::files::{self, FromFiles as _};
use crate::tls::clock::unix_now;

/// Largest response that is read; usual ones have half a kilobyte to two.
const RESPONSE_BYTES_MAX: u64 = 64 << 10;
/// How far the responder's clock may be ahead.
const CLOCK_SKEW_SECONDS: i64 = 300;
/// A basic response (RFC 6960, 4.2.1).
const BASIC: Oid<'static> = oid!(1.3.6.1.5.5.7.48.1.1);

/// Why a response is not stapled.
#[derive(Debug, thiserror::Error)]
enum ResponseError {
    #[error(transparent)]
    File(#[from] TlsFileError),
    #[error("it is not a basic OCSP response in DER")]
    Malformed,
    #[error("the responder has refused the request (status {0})")]
    Unsuccessful(u32),
    #[error("the certificate of the issuer is not in the chain, and it is needed to check the response")]
    NoIssuer,
    #[error("it is for another certificate; ask for a response for the present one")]
    OtherCertificate,
    #[error("neither the issuer nor a responder that it appointed has signed it")]
    BadSignature,
    #[error("the certificate has been revoked; replace it")]
    Revoked,
    #[error("the responder does not know the certificate")]
    Unknown,
    #[error("it is not valid yet; is the clock right?")]
    NotYetValid,
    #[error("it does not say when it ends (nextUpdate)")]
    Endless,
    #[error("it has ended; ask for a new one")]
    Ended,
}

impl From<Error> for ResponseError {
    fn from(_: Error) -> Self {
        Self::Malformed
    }
}

impl<E> From<nom::Err<E>> for ResponseError {
    fn from(_: nom::Err<E>) -> Self {
        Self::Malformed
    }
}

/// The file of the response for the certificate in a file.
pub(super) fn response_file(cert: &Path) -> PathBuf {
    let mut name = OsString::from(cert);
    name.push(".ocsp");
    name.into()
}

impl Certificate {
    /// Staples the response beside the file `cert`, if there is one. If it cannot be used, that of `former` stays until it
    /// ends, unless `former` is another certificate, or the certificate has been revoked.
    ///
    /// # Errors
    /// If the file cannot be read because of a shortage, so that it is read again.
    pub(super) fn staple(mut self, cert: &Path, former: Option<&Self>) -> Result<Self, TlsFileError> {
        let path = response_file(cert);
        let (response, ends_at) = match read(&path, &self.certified.cert) {
            Ok(read) => read,
            Err(ResponseError::File(error)) if error.is_shortage() => return Err(error),
            Err(ResponseError::File(error)) if error.is_missing() => (None, 0),
            Err(error) => {
                let is_revoked = matches!(error, ResponseError::Revoked);
                let kept = former.filter(|one| {
                    !is_revoked && one.leaf_der() == self.leaf_der() && one.stapled_until > unix_now()
                });
                self.warnings.push(TlsFileWarning::NotStapled { path, problem: error.to_string() });
                kept.map_or((None, 0), |one| (one.certified.ocsp.clone(), one.stapled_until))
            }
        };
        self.set_response(response, ends_at);
        Ok(self)
    }

    /// Drops a response that has ended at `now`, in seconds since 1970; returns a warning then.
    pub(in crate::tls) fn drop_ended_response(&mut self, now: u64) -> Option<TlsFileWarning> {
        if self.stapled_until == 0 || self.stapled_until > now {
            return None;
        }
        self.set_response(None, 0);
        let path = self.origin().and_then(|origin| origin.paths().get(2)).cloned().unwrap_or_default();
        let warning = TlsFileWarning::NotStapled { path, problem: ResponseError::Ended.to_string() };
        self.warnings.push(warning.clone());
        Some(warning)
    }

    fn set_response(&mut self, response: Option<Vec<u8>>, ends_at: u64) {
        Arc::make_mut(&mut self.certified).ocsp = response;
        self.stapled_until = ends_at;
    }
}

/// The response in a file, and when it ends, in seconds since 1970.
fn read(path: &Path, chain: &[CertificateDer<'_>]) -> Result<(Option<Vec<u8>>, u64), ResponseError> {
    let der = files::read_at_most(path, RESPONSE_BYTES_MAX)?.bytes.to_vec();
    let ends_at = check(&der, chain, unix_now().cast_signed())?;
    Ok((Some(der), ends_at))
}

/// Checks that a response may be stapled to the first certificate of a chain at `now`; returns when it ends.
fn check(der: &[u8], chain: &[CertificateDer<'_>], now: i64) -> Result<u64, ResponseError> {
    let response = BasicResponse::parse(der)?;
    let chain: Vec<_> = chain.iter().filter_map(|der| Some(X509Certificate::from_der(der).ok()?.1)).collect();
    let leaf = chain.first().ok_or(ResponseError::NoIssuer)?;
    let issuer = chain.iter().find(|one| one.subject() == leaf.issuer()).ok_or(ResponseError::NoIssuer)?;
    let single = response.singles.iter().find(|one| one.is_for(leaf, issuer));
    let single = single.ok_or(ResponseError::OtherCertificate)?;
    if !response.is_signed_by(issuer) {
        return Err(ResponseError::BadSignature);
    }
    match single.status {
        Tag(0) => {}
        Tag(1) => return Err(ResponseError::Revoked),
        _ => return Err(ResponseError::Unknown),
    }
    let next_update = single.next_update.ok_or(ResponseError::Endless)?;
    if single.this_update > now + CLOCK_SKEW_SECONDS {
        Err(ResponseError::NotYetValid)
    } else if next_update <= now {
        Err(ResponseError::Ended)
    } else {
        Ok(next_update.cast_unsigned())
    }
}

/// A basic response (RFC 6960, 4.2.1), as far as it is looked at.
struct BasicResponse<'a> {
    /// What is signed, in DER.
    signed: &'a [u8],
    signature: BitString<'a>,
    /// Certificates of responders.
    responders: Vec<X509Certificate<'a>>,
    singles: Vec<SingleResponse<'a>>,
}

impl<'a> BasicResponse<'a> {
    fn parse(der: &'a [u8]) -> Result<Self, ResponseError> {
        let outer = elements(&whole(der)?)?;
        let (status, body) = outer.split_first().ok_or(ResponseError::Malformed)?;
        let status = status.as_enumerated()?.0;
        if status != 0 {
            return Err(ResponseError::Unsuccessful(status));
        }
        let body = elements(&tagged(body, 0)?.ok_or(ResponseError::Malformed)?)?;
        let [kind, basic] = &body[..] else { return Err(ResponseError::Malformed) };
        if kind.as_oid()? != BASIC {
            return Err(ResponseError::Malformed);
        }
        let basic = whole(basic.data)?;
        let (after_data, _) = Any::from_der(basic.data)?;
        let signed = &basic.data[..basic.data.len() - after_data.len()];
        let basic = elements(&basic)?;
        let [data, _algorithm, signature, optional @ ..] = &basic[..] else {
            return Err(ResponseError::Malformed);
        };
        let responders = tagged(optional, 0)?.map_or(&[][..], |one| one.data);
        // Only the answers are a SEQUENCE without a tag.
        let data = elements(data)?;
        let singles = data.into_iter().find(|field| field.tag() == Tag::Sequence);
        let singles = elements(&singles.ok_or(ResponseError::Malformed)?)?;
        Ok(Self {
            signed,
            signature: signature.clone().bitstring()?,
            responders: SequenceIterator::<_, DerParser, X509Error>::new(responders)
                .collect::<Result<_, _>>()
                .map_err(|_| ResponseError::Malformed)?,
            singles: singles.iter().map(SingleResponse::parse).collect::<Result<_, _>>()?,
        })
    }

    /// Whether the issuer has signed it, or a responder to whom the issuer has given a certificate for that (RFC 6960,
    /// 4.2.2.2).
    fn is_signed_by(&self, issuer: &X509Certificate<'_>) -> bool {
        let is_appointed = |responder: &&X509Certificate<'_>| {
            let usage = responder.extended_key_usage().ok().flatten();
            usage.is_some_and(|usage| usage.value.ocsp_signing)
                && responder.validity().is_valid()
                && has_signed(issuer, responder.tbs_certificate.as_ref(), &responder.signature_value.data)
        };
        let mut signers = iter::once(issuer).chain(self.responders.iter().filter(is_appointed));
        signers.any(|signer| has_signed(signer, self.signed, &self.signature.data))
    }
}

/// The answer about one certificate.
struct SingleResponse<'a> {
    /// Hash algorithm, hash of the issuer's name, hash of its key, serial number.
    id: Vec<Any<'a>>,
    status: Tag,
    this_update: i64,
    next_update: Option<i64>,
}

impl<'a> SingleResponse<'a> {
    fn parse(single: &Any<'a>) -> Result<Self, ResponseError> {
        let fields = elements(single)?;
        let [id, status, this_update, optional @ ..] = &fields[..] else {
            return Err(ResponseError::Malformed);
        };
        Ok(Self {
            id: elements(id)?,
            status: status.tag(),
            this_update: unix(this_update)?,
            next_update: tagged(optional, 0)?.as_ref().map(unix).transpose()?,
        })
    }

    fn is_for(&self, leaf: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
        let [algorithm, name, key, serial] = &self.id[..] else { return false };
        let algorithm = elements(algorithm).unwrap_or_default();
        let hash = match algorithm.first().and_then(|oid| oid.as_oid().ok()) {
            Some(oid) if oid == OID_HASH_SHA1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Some(oid) if oid == OID_NIST_HASH_SHA256 => &digest::SHA256,
            _ => return false,
        };
        let is_hash = |of: &[u8], given: &Any<'_>| digest::digest(hash, of).as_ref() == given.data;
        serial.data == leaf.raw_serial()
            && is_hash(leaf.issuer().as_raw(), name)
            && is_hash(&issuer.public_key().subject_public_key.data, key)
    }
}

/// A value that nothing follows.
fn whole(der: &[u8]) -> Result<Any<'_>, ResponseError> {
    let (rest, value) = Any::from_der(der)?;
    if rest.is_empty() { Ok(value) } else { Err(ResponseError::Malformed) }
}

/// The elements of a SEQUENCE.
fn elements<'a>(of: &Any<'a>) -> Result<Vec<Any<'a>>, Error> {
    of.tag().assert_eq(Tag::Sequence)?;
    SequenceIterator::<_, DerParser>::new(of.data).collect()
}

/// The value that has an explicit tag, if there is one.
fn tagged<'a>(fields: &[Any<'a>], tag: u32) -> Result<Option<Any<'a>>, ResponseError> {
    let is_meant = |field: &&Any<'_>| field.class() == Class::ContextSpecific && field.tag() == Tag(tag);
    fields.iter().find(is_meant).map(|field| whole(field.data)).transpose()
}

/// A `GeneralizedTime`, in seconds since 1970.
fn unix(time: &Any<'_>) -> Result<i64, Error> {
    Ok(time.as_generalizedtime()?.utc_datetime()?.unix_timestamp())
}
