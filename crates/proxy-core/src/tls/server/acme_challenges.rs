//! Challenges of ACME that are answered in handshakes: TLS-ALPN-01 (RFC 8737).

use std::fmt;
use std::sync::Arc;

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

/// Where the answers are found. Clones share it.
#[derive(Clone)]
pub struct AcmeChallenges(Arc<FindDigest>);

impl AcmeChallenges {
    /// `find` returns the digest of the key authorization for a domain whose validation is under way.
    pub fn new(find: impl Fn(&str) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    /// What a handshake for the domain needs to prove that it is ours; `None` if nothing is to be proved. Each answer has
    /// a new key, since there are few.
    pub(in crate::tls) fn answer(&self, domain: &str) -> Option<ServerConfig> {
        let digest = (self.0)(domain).filter(|digest| digest.len() == DIGEST_BYTES)?;
        let mut params = CertificateParams::new(vec![domain.to_owned()]).ok()?;
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(&digest)];
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
}

impl fmt::Debug for AcmeChallenges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AcmeChallenges")
    }
}
