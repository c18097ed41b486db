//! Errors of rustls about certificates, in plain words.

use records::kinds::NO_COMMON_VERSION;
use records::metrics::CertificateRefusal;
use rustls::{CertificateError as C, Error, PeerIncompatible};

/// Why a client's certificate is refused; `None` if the error is about something else.
pub(in crate::tls) fn certificate_refusal(error: &Error) -> Option<CertificateRefusal> {
    use CertificateRefusal as R;
    let error = match error {
        Error::NoCertificatesPresented => return Some(R::NotSent),
        Error::InvalidCertRevocationList(_) => return Some(R::RevocationUnknown),
        Error::InvalidCertificate(error) => error,
        _ => return None,
    };
    Some(match error {
        C::UnknownIssuer => R::UnknownCa,
        C::Expired | C::ExpiredContext { .. } => R::Expired,
        C::NotValidYet | C::NotValidYetContext { .. } => R::NotYetValid,
        C::Revoked => R::Revoked,
        C::UnknownRevocationStatus | C::ExpiredRevocationList | C::ExpiredRevocationListContext { .. } => {
            R::RevocationUnknown
        }
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => R::WrongUsage,
        C::BadSignature | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => R::BadSignature,
        C::Other(other) => match other.to_string() {
            // rustls has no errors of its own for these of webpki.
            text if text.contains("CaUsedAsEndEntity") => R::WrongUsage,
            text if TOO_DEEP.iter().any(|variant| text.contains(variant)) => R::ChainTooDeep,
            _ => R::Other,
        },
        _ => R::Other,
    })
}

/// Errors of webpki about chains that are too deep, or too costly to follow.
const TOO_DEEP: [&str; 4] = [
    "MaximumPathDepthExceeded",
    "PathLenConstraintViolated",
    "MaximumPathBuildCallsExceeded",
    "MaximumSignatureChecksExceeded",
];

/// The error in words: a client's certificate that is refused, or one in a file that cannot be read.
pub(in crate::tls) fn describe(error: &Error) -> String {
    let Error::InvalidCertificate(error) = error else {
        return match error {
            Error::NoCertificatesPresented => "the client sent no certificate".to_owned(),
            Error::InvalidCertRevocationList(_) => {
                "the certificate's revocation list is not signed by its authority".to_owned()
            }
            Error::PeerIncompatible(
                PeerIncompatible::Tls12NotOffered | PeerIncompatible::Tls12NotOfferedOrEnabled,
            ) => NO_COMMON_VERSION.to_owned(),
            other => other.to_string(),
        };
    };
    let what = match error {
        C::UnknownIssuer => "is signed by nobody whom --client-ca trusts",
        C::BadSignature | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is not signed by the authority that it names"
        }
        C::Expired | C::ExpiredContext { .. } => "has expired",
        C::NotValidYet | C::NotValidYetContext { .. } => "is not valid yet",
        C::InvalidPurpose | C::InvalidPurposeContext { .. } => "is not for a client",
        C::BadEncoding => "is damaged, or no X.509 certificate",
        C::Other(_) if error.to_string().contains("UnsupportedCriticalExtension") => {
            "has a critical extension that is not understood"
        }
        C::UnhandledCriticalExtension => "has a critical extension that is not understood",
        C::UnsupportedSignatureAlgorithmContext { .. } => "is signed by an algorithm that is not supported",
        C::Revoked => "is revoked",
        C::UnknownRevocationStatus => "is of an authority without a revocation list",
        C::ExpiredRevocationList | C::ExpiredRevocationListContext { .. } => {
            "is of an authority whose revocation list has expired"
        }
        C::Other(_) if TOO_DEEP.iter().any(|variant| error.to_string().contains(variant)) => {
            "has too many intermediates"
        }
        C::Other(_) if error.to_string().contains("UnsupportedCertVersion") => {
            "is X.509 version 1 or 2, and must be version 3"
        }
        // rustls has no separate error for a client that uses an authority's certificate.
        C::Other(_) if error.to_string().contains("CaUsedAsEndEntity") => {
            "is an authority's (a CA's), which cannot stand for a client"
        }
        _ => "cannot be verified",
    };
    format!("the certificate {what}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use records::kinds::handshake_failure;
    use rustls::{AlertDescription, OtherError};

    use super::*;

    #[test]
    fn reasons_are_recognised_in_the_words_of_rustls() {
        for (error, reason) in [
            (PeerIncompatible::Tls12NotOffered.into(), "no common TLS version"),
            (PeerIncompatible::NoCipherSuitesInCommon.into(), "no cipher suites in common"),
            (PeerIncompatible::NoKxGroupsInCommon.into(), "no kx groups in common"),
            (Error::AlertReceived(AlertDescription::UnknownCA), "unknown CA"),
            (Error::AlertReceived(AlertDescription::BadCertificate), "bad certificate"),
            (Error::NoApplicationProtocol, "peer doesn't support any known protocol"),
        ] {
            assert_eq!(handshake_failure(&describe(&error)), reason);
        }
    }

    #[test]
    fn no_name_of_a_rust_variant_reaches_the_user() {
        let of_an_authority = C::Other(OtherError(Arc::new(std::io::Error::other("CaUsedAsEndEntity"))));
        let of_version_1 = C::Other(OtherError(Arc::new(std::io::Error::other("UnsupportedCertVersion"))));
        for error in [
            C::UnknownIssuer,
            C::BadEncoding,
            C::Expired,
            C::Revoked,
            C::NotValidForName,
            of_an_authority,
            of_version_1,
        ] {
            let (variant, text) = (format!("{error:?}"), describe(&Error::InvalidCertificate(error)));
            let variant = variant.split('(').next().unwrap();
            assert!(text.starts_with("the certificate ") && !text.contains(variant), "{text}");
            assert!(!text.contains("CaUsedAsEndEntity") && !text.contains("UnsupportedCert"), "{text}");
        }
    }
}
