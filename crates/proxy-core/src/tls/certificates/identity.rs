//! Whom the certificate of a client names, as text for records.

use records::text::clean;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::x509::X509Name;

use crate::tls::certificates::description;

/// Characters that are kept of a name in a certificate that may be anybody's: twice as many as a name of X.520 may have.
const NAME_CHARS_MAX: usize = 128;

/// Whom a certificate names, made printable and cut to a bound: its common name, else the first of its other names.
pub(in crate::tls) fn subject(der: &[u8]) -> String {
    cut(&description::subject(der))
}

/// Who has issued a certificate, made printable and cut to a bound: the issuer's common name, else its whole name.
pub(in crate::tls) fn issuer(der: &[u8]) -> String {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return String::new() };
    issuer_name(certificate.issuer())
}

pub(in crate::tls) fn issuer_name(issuer: &X509Name<'_>) -> String {
    let common = issuer.iter_common_name().find_map(|name| name.as_str().ok());
    cut(&clean::text(&common.map_or_else(|| issuer.to_string(), str::to_owned)))
}

fn cut(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}
