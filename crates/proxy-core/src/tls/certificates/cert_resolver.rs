//! Chooses the certificate for a client.

use std::collections::HashMap;
use std::iter;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{SignatureAlgorithm, SignatureScheme};

use crate::tls::Certificate;
use crate::tls::certificates::served::CertificateUse;
use crate::tls::provider::schemes;
use crate::tls::server::evidence::{HandshakeNotes, PresentedCertificate};
use crate::tls::settings::ServerNames;
use crate::upstream::route::NameRoutes;

/// Certificates for the same name, those first whose keys sign with the least work.
type Candidates = Vec<Candidate>;

#[derive(Clone, Debug)]
struct Candidate {
    certified: Arc<CertifiedKey>,
    /// The signature schemes of its key, the preferred one first.
    schemes: Arc<[SignatureScheme]>,
    usage: Arc<CertificateUse>,
}

impl Candidate {
    fn new(certificate: &Certificate) -> Self {
        let certified = certificate.certified();
        Self { schemes: schemes(&*certified.key).into(), certified, usage: certificate.usage() }
    }

    /// The scheme that it signs with for a client that can verify these. rustls makes the same choice.
    fn scheme(&self, offered: &[SignatureScheme]) -> Option<SignatureScheme> {
        self.schemes.iter().copied().find(|scheme| offered.contains(scheme))
    }
}

/// Chooses by the name that a client asks for, and among the certificates for that name by the signatures that it
/// can verify.
#[derive(Debug)]
pub(in crate::tls) struct CertResolver {
    exact: HashMap<String, Candidates>,
    /// By the part after `*.`; a wildcard matches one label (RFC 9525, 6.3).
    wildcard: HashMap<String, Candidates>,
    /// For clients that ask for no name, or an unknown one: the first certificate, and others for one of its
    /// names.
    default: Candidates,
    served: ServerNames,
    /// The only names that are served; `None`: any.
    routes: Option<Arc<NameRoutes>>,
}

impl CertResolver {
    pub(in crate::tls) fn new(certificates: &[&Certificate]) -> Self {
        let mut sorted = certificates.to_vec();
        sorted.sort_by_key(|certificate| signing_work(certificate));
        let (mut exact, mut wildcard) = (HashMap::<_, Candidates>::new(), HashMap::<_, Candidates>::new());
        for certificate in &sorted {
            for name in certificate.names() {
                let (names, name) =
                    name.strip_prefix("*.").map_or((&mut exact, &**name), |parent| (&mut wildcard, parent));
                names.entry(name.to_owned()).or_default().push(Candidate::new(certificate));
            }
        }
        let first = certificates.first();
        let is_default = |certificate: &&&Certificate| {
            first.is_some_and(|first| {
                Arc::ptr_eq(&first.certified(), &certificate.certified())
                    || first.names().iter().any(|name| certificate.names().contains(name))
            })
        };
        let default =
            sorted.iter().filter(is_default).map(|certificate| Candidate::new(certificate)).collect();
        Self { exact, wildcard, default, served: ServerNames::Any, routes: None }
    }

    /// The same for a proxy that may refuse names.
    pub(in crate::tls) fn serving(self, served: ServerNames, routes: Option<Arc<NameRoutes>>) -> Self {
        Self { served, routes, ..self }
    }

    /// Whether a client may ask for a name. `has_name`: a certificate has it.
    fn serves(&self, name: Option<&str>, has_name: bool) -> bool {
        let has_route = |routes: &Arc<NameRoutes>| routes.terminated(name.unwrap_or_default()).is_some();
        (has_name || self.served == ServerNames::Any) && self.routes.as_ref().is_none_or(has_route)
    }

    /// The certificate, the scheme that it signs with if there is one, and whether any has the name.
    fn choose(
        &self,
        name: Option<&str>,
        schemes: &[SignatureScheme],
    ) -> Option<(&Candidate, Option<SignatureScheme>, bool)> {
        let exact = name.and_then(|name| self.exact.get(name));
        let parent = name.and_then(|name| name.split_once('.')).map(|(_, parent)| parent);
        let wildcard = parent.and_then(|parent| self.wildcard.get(parent));
        let has_name = exact.is_some() || wildcard.is_some();
        let candidates = || exact.into_iter().chain(wildcard).chain(iter::once(&self.default)).flatten();
        candidates()
            .find_map(|candidate| Some((candidate, Some(candidate.scheme(schemes)?), has_name)))
            // No certificate suits; with one of them rustls sends the right alert.
            .or_else(|| Some((candidates().next()?, None, has_name)))
    }
}

/// Orders keys by the cost of a signature with aws-lc, the cheapest first.
fn signing_work(certificate: &Certificate) -> usize {
    match (certificate.certified().key.algorithm(), certificate.kind()) {
        (SignatureAlgorithm::ECDSA, "ECDSA P-256") => 0,
        (SignatureAlgorithm::ED25519, _) => 1,
        (SignatureAlgorithm::ECDSA, "ECDSA P-384") => 2,
        (SignatureAlgorithm::RSA, kind) => kind.trim_start_matches("RSA-").parse().unwrap_or(usize::MAX),
        _ => 3,
    }
}

impl ResolvesServerCert for CertResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // rustls gives it in lower case.
        let name = hello.server_name();
        let chosen = self.choose(name, hello.signature_schemes());
        let presented = chosen.map(|(candidate, scheme, has_name)| PresentedCertificate {
            certificate: Arc::clone(&candidate.usage),
            scheme: scheme.map(u16::from),
            is_name_uncovered: name.is_some() && !has_name,
        });
        HandshakeNotes::resolved(name, presented);
        if !chosen.is_some_and(|(.., has_name)| self.serves(name, has_name)) {
            HandshakeNotes::refuse_name();
            return None;
        }
        chosen.map(|(candidate, ..)| Arc::clone(&candidate.certified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::testing::{TestKey, certificate};

    const ECDSA: &[SignatureScheme] =
        &[SignatureScheme::RSA_PSS_SHA256, SignatureScheme::ECDSA_NISTP256_SHA256];
    const ONLY_RSA: &[SignatureScheme] = &[SignatureScheme::RSA_PSS_SHA256];

    /// The index of the chosen certificate in `certificates`.
    fn chosen(certificates: &[Certificate], name: Option<&str>, schemes: &[SignatureScheme]) -> usize {
        let resolver = CertResolver::new(&certificates.iter().collect::<Vec<_>>());
        let (chosen, scheme, _) = resolver.choose(name, schemes).unwrap();
        assert!(scheme.is_none_or(|scheme| schemes.contains(&scheme)));
        certificates.iter().position(|one| Arc::ptr_eq(&one.certified(), &chosen.certified)).unwrap()
    }

    #[test]
    fn the_exact_name_wins_over_the_wildcard_and_that_over_the_default() {
        let of = |name| certificate(TestKey::P256, &[name]);
        let all = [of("other.test"), of("*.example.test"), of("www.example.test")];
        for (name, place) in [
            (Some("www.example.test"), 2),
            (Some("api.example.test"), 1),
            (Some("other.test"), 0),
            // A wildcard is neither for its parent nor for two labels.
            (Some("example.test"), 0),
            (Some("a.b.example.test"), 0),
            (Some("unknown.test"), 0),
            (None, 0),
        ] {
            assert_eq!(chosen(&all, name, ECDSA), place, "{name:?}");
        }
    }

    #[test]
    fn the_cheapest_key_that_the_client_can_verify_is_chosen() {
        let all = [certificate(TestKey::Rsa, &["a.test"]), certificate(TestKey::P256, &["a.test"])];
        for name in [Some("a.test"), None] {
            assert_eq!(chosen(&all, name, ECDSA), 1, "{name:?}");
            assert_eq!(chosen(&all, name, ONLY_RSA), 0, "{name:?}");
        }
        let all = [certificate(TestKey::P384, &["a.test"]), certificate(TestKey::Ed25519, &["a.test"])];
        assert_eq!(chosen(&all, Some("a.test"), &[SignatureScheme::ECDSA_NISTP384_SHA384]), 0);
        assert_eq!(
            chosen(&all, Some("a.test"), &[SignatureScheme::ECDSA_NISTP384_SHA384, SignatureScheme::ED25519]),
            1
        );
    }

    #[test]
    fn a_client_that_cannot_verify_the_exact_one_gets_the_wildcard() {
        let all = [
            certificate(TestKey::P256, &["default.test"]),
            certificate(TestKey::P256, &["www.a.test"]),
            certificate(TestKey::Rsa, &["*.a.test"]),
        ];
        assert_eq!(chosen(&all, Some("www.a.test"), ECDSA), 1);
        assert_eq!(chosen(&all, Some("www.a.test"), ONLY_RSA), 2);
        // No certificate suits: the handshake fails with the certificate of that name.
        assert_eq!(chosen(&all[..2], Some("www.a.test"), ONLY_RSA), 1);
    }

    #[test]
    fn names_are_compared_in_lower_case() {
        let all = [
            certificate(TestKey::P256, &["default.test"]),
            certificate(TestKey::P256, &["WWW.Example.Test"]),
        ];
        assert_eq!(chosen(&all, Some("www.example.test"), ECDSA), 1);
    }
}
