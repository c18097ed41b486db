//! Errors of rustls in plain words: the problem of a certificate, and a remedy.

use rustls::{CertificateError, Error, InvalidMessage};

/// A refused certificate, or another error, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsRefusal {
    pub(crate) reason: String,
    /// A possible remedy; empty if there is none.
    pub(crate) advice: &'static str,
}

const TRUST: &str = "name the authority that signed it with --ca FILE, or do not verify it with --insecure";
const RENEW: &str = "renew it, or do not verify it with --insecure";
const CLOCK: &str = "compare the clocks of both hosts, or do not verify it with --insecure";
const REISSUE: &str = "have it issued anew, or do not verify it with --insecure";
const OTHER_NAME: &str = "ask for one of its names with --sni NAME, or do not verify it with --insecure";
const NOT_A_SERVERS: &str = "give the server a certificate that this authority has signed, trust exactly this one with \
                             --ca FILE, or do not verify it with --insecure";

impl TlsRefusal {
    pub(crate) fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => Self::of_certificate(error),
            Error::NoCertificatesPresented => Self::new("the server presents no certificate", ""),
            Error::UnsupportedNameType => {
                Self::new("the server's name is neither a DNS name nor an address", "")
            }
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                Self::new("the server does not speak TLS on this port, where plain HTTP may be: http://", "")
            }
            other => Self::new(other.to_string(), ""),
        }
    }

    fn new(reason: impl Into<String>, advice: &'static str) -> Self {
        Self { reason: reason.into(), advice }
    }

    fn of_certificate(error: &CertificateError) -> Self {
        use CertificateError as C;
        let (what, advice) = match error {
            C::UnknownIssuer => ("is signed by nobody who is trusted", TRUST),
            C::BadSignature | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
                ("is not signed by the authority that it names", TRUST)
            }
            C::Expired | C::ExpiredContext { .. } => ("has expired", RENEW),
            C::NotValidYet | C::NotValidYetContext { .. } => ("is not valid yet", CLOCK),
            C::NotValidForName => ("is for other names", OTHER_NAME),
            C::NotValidForNameContext { expected, presented } => {
                let names = if presented.is_empty() { "no name".to_owned() } else { names(presented) };
                let reason = format!("the certificate is not for {}, but for {names}", expected.to_str());
                return Self::new(reason, OTHER_NAME);
            }
            C::InvalidPurpose | C::InvalidPurposeContext { .. } => ("is not for a server", REISSUE),
            C::BadEncoding => ("is damaged, or no X.509 certificate", REISSUE),
            C::UnhandledCriticalExtension => ("has a critical extension that is not understood", REISSUE),
            C::UnsupportedSignatureAlgorithmContext { .. } => {
                ("is signed by an algorithm that is not supported", REISSUE)
            }
            C::Revoked => ("is revoked", REISSUE),
            C::ApplicationVerificationFailure => ("is not the one that is expected", ""),
            C::Other(_) if error.to_string().contains("UnsupportedCertVersion") => {
                ("is X.509 version 1 or 2, and must be version 3", REISSUE)
            }
            // rustls has no separate error for a server that uses an authority's certificate.
            C::Other(_) if error.to_string().contains("CaUsedAsEndEntity") => {
                ("is an authority's (a CA's), which cannot stand for a server", NOT_A_SERVERS)
            }
            _ => ("cannot be verified", REISSUE),
        };
        Self::new(format!("the certificate {what}"), advice)
    }
}

/// Names as rustls shows them, `DnsName("a.example")`, without the Rust around them.
fn names(presented: &[String]) -> String {
    let plain = |name: &String| {
        let inner = name.split_once('(').map_or(&**name, |(_, rest)| rest.trim_end_matches(')'));
        records::text::clean::text(inner.trim_matches('"'))
    };
    presented.iter().map(plain).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;
    use rustls::pki_types::ServerName;

    use super::*;

    fn shown(error: CertificateError) -> String {
        let TlsRefusal { reason, advice } = TlsRefusal::of(&Error::InvalidCertificate(error));
        format!("{reason}; {advice}")
    }

    #[test]
    fn a_ca_certificate_is_refused_with_what_to_give_instead() {
        // As webpki names it, which rustls only passes on.
        let error = std::io::Error::other("CaUsedAsEndEntity");
        let text = shown(CertificateError::Other(OtherError(Arc::new(error))));
        assert!(text.starts_with("the certificate is an authority's (a CA's)"), "{text}");
        assert!(text.contains("give the server a certificate that this authority has signed"), "{text}");
    }

    #[test]
    fn names_of_a_certificate_for_another_host_are_listed_plainly() {
        let expected = ServerName::try_from("localhost").unwrap();
        let presented = vec!["DnsName(\"a.example\")".to_owned(), "IpAddress(192.0.2.1)".to_owned()];
        let text = shown(CertificateError::NotValidForNameContext { expected: expected.clone(), presented });
        assert!(
            text.starts_with("the certificate is not for localhost, but for a.example, 192.0.2.1;"),
            "{text}"
        );
        let none = CertificateError::NotValidForNameContext { expected, presented: Vec::new() };
        assert!(shown(none).contains("but for no name"));
    }

    #[test]
    fn no_name_of_a_rust_variant_reaches_the_user() {
        use CertificateError as C;
        for error in [
            C::UnknownIssuer,
            C::BadSignature,
            C::Expired,
            C::NotValidYet,
            C::NotValidForName,
            C::InvalidPurpose,
            C::BadEncoding,
            C::Revoked,
            C::UnhandledCriticalExtension,
            C::UnknownRevocationStatus,
            C::InvalidOcspResponse,
            C::ApplicationVerificationFailure,
            C::UnsupportedSignatureAlgorithmForPublicKeyContext {
                signature_algorithm_id: vec![6],
                public_key_algorithm_id: vec![6],
            },
        ] {
            let variant = format!("{error:?}");
            let variant = variant.split([' ', '(']).next().unwrap();
            let text = shown(error.clone());
            assert!(text.starts_with("the certificate ") && !text.contains(variant), "{text}");
        }
    }
}
