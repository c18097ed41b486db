//! Errors of rustls in plain words: the problem of a certificate, and a remedy.

use rustls::{CertificateError, Error};

/// The flags by which a person trusts more: for advice.
#[derive(Clone, Copy, Debug)]
pub struct TrustFlags {
    /// Names a file of authorities, such as `--ca FILE`.
    pub authorities: &'static str,
    /// Gives another name to ask for, such as `--sni NAME`.
    pub name: &'static str,
    /// Verifies nothing, such as `--insecure`.
    pub insecure: &'static str,
}

/// Why a server is refused, or another error of TLS, in words.
pub fn reason(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { expected, presented }) => {
            let names = if presented.is_empty() { "no name".to_owned() } else { names(presented) };
            format!("the certificate is not for {}, but for {names}", expected.to_str())
        }
        Error::InvalidCertificate(error) => format!("the certificate {}", Fault::of(error).words()),
        Error::NoCertificatesPresented => "the server presents no certificate".to_owned(),
        Error::UnsupportedNameType => "the server's name is neither a DNS name nor an address".to_owned(),
        other => other.to_string(),
    }
}

/// A possible remedy; empty if there is none.
pub fn advice(error: &Error, flags: TrustFlags) -> String {
    let Error::InvalidCertificate(error) = error else { return String::new() };
    let TrustFlags { authorities, name, insecure } = flags;
    let remedy = match Fault::of(error) {
        Fault::UnknownIssuer | Fault::BadSignature => {
            format!("name the authority that signed it with {authorities}")
        }
        Fault::Expired => "renew it".to_owned(),
        Fault::NotYetValid => "compare the clocks of both hosts".to_owned(),
        Fault::OtherName => format!("ask for one of its names with {name}"),
        Fault::AuthoritysOwn => format!(
            "give the server a certificate that this authority has signed, trust exactly this one with {authorities}"
        ),
        Fault::NotExpected => return String::new(),
        Fault::Faulty(_) => "have it issued anew".to_owned(),
    };
    format!("{remedy}, or do not verify it with {insecure}")
}

/// What is wrong with a certificate.
enum Fault {
    UnknownIssuer,
    BadSignature,
    Expired,
    NotYetValid,
    OtherName,
    AuthoritysOwn,
    NotExpected,
    /// In words, behind "the certificate".
    Faulty(&'static str),
}

impl Fault {
    fn of(error: &CertificateError) -> Self {
        use CertificateError as C;
        match error {
            C::UnknownIssuer => Self::UnknownIssuer,
            C::BadSignature | C::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
                Self::BadSignature
            }
            C::Expired | C::ExpiredContext { .. } => Self::Expired,
            C::NotValidYet | C::NotValidYetContext { .. } => Self::NotYetValid,
            C::NotValidForName | C::NotValidForNameContext { .. } => Self::OtherName,
            C::InvalidPurpose | C::InvalidPurposeContext { .. } => Self::Faulty("is not for a server"),
            C::BadEncoding => Self::Faulty("is damaged, or no X.509 certificate"),
            C::UnhandledCriticalExtension => Self::Faulty("has a critical extension that is not understood"),
            C::UnsupportedSignatureAlgorithmContext { .. } => {
                Self::Faulty("is signed by an algorithm that is not supported")
            }
            C::Revoked => Self::Faulty("is revoked"),
            C::ApplicationVerificationFailure => Self::NotExpected,
            C::Other(_) if error.to_string().contains("UnsupportedCertVersion") => {
                Self::Faulty("is X.509 version 1 or 2, and must be version 3")
            }
            // rustls has no separate error for a server that uses an authority's certificate.
            C::Other(_) if error.to_string().contains("CaUsedAsEndEntity") => Self::AuthoritysOwn,
            _ => Self::Faulty("cannot be verified"),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::UnknownIssuer => "is signed by nobody who is trusted",
            Self::BadSignature => "is not signed by the authority that it names",
            Self::Expired => "has expired",
            Self::NotYetValid => "is not valid yet",
            Self::OtherName => "is for other names",
            Self::AuthoritysOwn => "is an authority's (a CA's), which cannot stand for a server",
            Self::NotExpected => "is not the one that is expected",
            Self::Faulty(words) => words,
        }
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

    const FLAGS: TrustFlags =
        TrustFlags { authorities: "--ca FILE", name: "--sni NAME", insecure: "--insecure" };

    fn shown(error: CertificateError) -> String {
        let error = Error::InvalidCertificate(error);
        format!("{}; {}", reason(&error), advice(&error, FLAGS))
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
