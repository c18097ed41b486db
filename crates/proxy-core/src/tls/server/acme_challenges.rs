//! Challenges of ACME that are answered in handshakes: TLS-ALPN-01 (RFC 8737).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

const PROTOCOL: &[u8] = b"acme-tls/1";
const DIGEST_BYTES: usize = 32;

type FindDigest = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

/// Answers of a certificate with the most names that authorities allow.
const ANSWERS_MAX: usize = 100;

/// Where the answers are found, and what was made of them. Clones share it.
#[derive(Clone)]
pub struct AcmeChallenges {
    find: Arc<FindDigest>,
    /// By digest: a key and a certificate for each handshake would cost more than the handshake.
    made: Arc<Mutex<BTreeMap<Vec<u8>, Arc<ServerConfig>>>>,
}

impl AcmeChallenges {
    /// `find` returns the digest of the key authorization for a domain whose validation is under way.
    pub fn new(find: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self { find: Arc::new(find), made: Arc::default() }
    }

    /// What a handshake for the domain needs to prove that it is ours; `None` if nothing is to be proved.
    pub(in crate::tls) fn answer(&self, domain: &str) -> Option<Arc<ServerConfig>> {
        let digest = (self.find)(domain).filter(|digest| digest.len() == DIGEST_BYTES)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = made.get(&digest) {
            return Some(Arc::clone(config));
        }
        let config = Arc::new(config(domain, &digest)?);
        if made.len() == ANSWERS_MAX {
            made.clear();
        }
        made.insert(digest, Arc::clone(&config));
        Some(config)
    }
}

fn config(domain: &str, digest: &[u8]) -> Option<ServerConfig> {
    let mut params = CertificateParams::new(vec![domain.to_owned()]).ok()?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let pair = KeyPair::generate().ok()?;
    let chain = vec![params.self_signed(&pair).ok()?.der().clone()];
    let key = any_supported_type(&PrivateKeyDer::try_from(pair.serialize_der()).ok()?).ok()?;
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().ok()?.with_no_client_auth();
    // rustls refuses to compare the key with a certificate that has a critical extension which it does not know.
    let certified = SingleCertAndKey::from(CertifiedKey::new(chain, key));
    let mut config = builder.with_cert_resolver(Arc::new(certified));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Some(config)
}

impl fmt::Debug for AcmeChallenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AcmeChallenges")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_made_once_and_few_are_kept() {
        let challenges =
            AcmeChallenges::new(|domain| Some(vec![domain.len().try_into().unwrap(); DIGEST_BYTES]));
        let answer = |length: usize| challenges.answer(&"a".repeat(length)).unwrap();
        assert!(Arc::ptr_eq(&answer(1), &answer(1)) && !Arc::ptr_eq(&answer(1), &answer(2)));
        (1..=ANSWERS_MAX + 10).for_each(|length| _ = answer(length));
        assert_eq!(challenges.made.lock().unwrap().len(), 10);
        assert!(AcmeChallenges::new(|_| Some(vec![0; 31])).answer("a").is_none());
    }
}
