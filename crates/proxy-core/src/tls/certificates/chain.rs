//! What clients may object to in a chain of certificates, and who has signed what.

use records::text::clean;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use x509_parser::asn1_rs::{Oid, oid};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::oid_registry::{
    OID_PKCS1_MD5WITHRSAENC, OID_PKCS1_SHA1WITHRSA, OID_PKIX_ACCESS_DESCRIPTOR_CA_ISSUERS,
};
use x509_parser::prelude::FromDer as _;

use crate::tls::certificates::description::key_kind;

/// Bits of an RSA key that clients still accept.
const RSA_BITS_MIN: usize = 2_048;
/// The signature algorithm of ECDSA with SHA-1 (RFC 3279, 2.2.3).
const ECDSA_WITH_SHA1: Oid<'static> = oid!(1.2.840.10045.4.1);
/// Faults of a chain that are named.
const FAULTS_MAX: usize = 8;

/// The faults of a chain, leaf first, each as a sentence without a full stop. Whether clients trust its end depends on
/// their authorities, and is not judged.
pub(in crate::tls) fn faults(chain: &[CertificateDer<'_>]) -> Vec<String> {
    let parsed = chain.iter().map(|der| X509Certificate::from_der(der).map(|(_, certificate)| certificate));
    let Ok(chain) = parsed.collect::<Result<Vec<_>, _>>() else {
        return vec!["a certificate of the chain cannot be read".to_owned()];
    };
    let broken = chain.windows(2).find(|pair| pair[0].issuer() != pair[1].subject()).map(|pair| {
        let (issuer, subject) = (name(pair[0].issuer()), name(pair[1].subject()));
        format!("the chain is out of order: {subject} follows where {issuer} is due")
    });
    let missing = match &chain[..] {
        // Only certificates below an intermediate one say where their issuer's certificate is.
        [leaf] if leaf.issuer() != leaf.subject() && names_issuer_file(leaf) => {
            Some(format!("the chain is incomplete: {} is missing", name(leaf.issuer())))
        }
        _ => None,
    };
    // Nobody checks the signature of an authority on itself.
    let weak = chain.iter().filter(|one| one.issuer() != one.subject()).filter_map(weak_signature);
    let short = chain.iter().filter_map(|one| {
        let kind = key_kind(one.public_key());
        let bits = kind.strip_prefix("RSA-")?.parse::<usize>().ok()?;
        (bits < RSA_BITS_MIN).then(|| format!("{} has an RSA key of only {bits} bits", name(one.subject())))
    });
    broken.into_iter().chain(missing).chain(weak).chain(short).take(FAULTS_MAX).collect()
}

fn weak_signature(certificate: &X509Certificate<'_>) -> Option<String> {
    let weak =
        [(OID_PKCS1_MD5WITHRSAENC, "MD5"), (OID_PKCS1_SHA1WITHRSA, "SHA-1"), (ECDSA_WITH_SHA1, "SHA-1")];
    let algorithm = &certificate.signature_algorithm.algorithm;
    let (_, hash) = weak.into_iter().find(|(oid, _)| oid == algorithm)?;
    Some(format!("{} is signed with {hash}", name(certificate.subject())))
}

/// Whether it says where the certificate of its issuer is (RFC 5280, 4.2.2.1).
fn names_issuer_file(certificate: &X509Certificate<'_>) -> bool {
    certificate.extensions().iter().any(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityInfoAccess(access) => access
            .accessdescs
            .iter()
            .any(|access| access.access_method == OID_PKIX_ACCESS_DESCRIPTOR_CA_ISSUERS),
        _ => false,
    })
}

/// Whether the key of a certificate has made a signature. The key alone decides: a signature that one of the algorithms
/// finds right was made with it.
pub(in crate::tls) fn has_signed(signer: &X509Certificate<'_>, message: &[u8], signature: &[u8]) -> bool {
    let key = &signer.public_key().subject_public_key.data;
    let algorithms = default_provider().signature_verification_algorithms.all;
    algorithms.iter().any(|algorithm| algorithm.verify_signature(key, message, signature).is_ok())
}

/// Printable, and not longer than a line.
pub(in crate::tls) fn name(name: &x509_parser::x509::X509Name<'_>) -> String {
    clean::text(&name.to_string()).chars().take(200).collect()
}
