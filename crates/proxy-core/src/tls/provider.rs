//! Timers around the expensive cryptography of a handshake, the key exchange and the signature, and a counter of the keys
//! that a client has set.
//!
//! rustls calls them from within a read, on the thread of a worker. Each adds to a sum of the thread: the worker takes
//! the times after every read of a handshake, and the engine takes the keys after every record.

use std::cell::Cell;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Instant;

use rustls::crypto::aws_lc_rs;
use rustls::crypto::cipher::{
    AeadKey, Iv, MessageDecrypter, MessageEncrypter, Tls13AeadAlgorithm, UnsupportedOperationError,
};
use rustls::crypto::{ActiveKeyExchange, CompletedKeyExchange, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{
    CipherSuiteCommon, ConnectionTrafficSecrets, Error, NamedGroup, ProtocolVersion, SignatureAlgorithm,
    SignatureScheme, SupportedCipherSuite, SupportedProtocolVersion, Tls13CipherSuite,
};

/// Time spent in the cryptography of a handshake, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CryptoTime {
    pub(crate) key_exchange_ns: u64,
    pub(crate) signature_ns: u64,
}

thread_local! {
    static SPENT: Cell<CryptoTime> = const { Cell::new(CryptoTime { key_exchange_ns: 0, signature_ns: 0 }) };
}

impl CryptoTime {
    /// Time that this thread has spent since the last call.
    pub(crate) fn take() -> Self {
        SPENT.take()
    }
}

impl AddAssign for CryptoTime {
    fn add_assign(&mut self, other: Self) {
        self.key_exchange_ns += other.key_exchange_ns;
        self.signature_ns += other.signature_ns;
    }
}

fn spend<R>(work: impl FnOnce() -> R, as_time: impl FnOnce(u64) -> CryptoTime) -> R {
    let began_at = Instant::now();
    let result = work();
    let mut spent = SPENT.get();
    spent += as_time(began_at.elapsed().as_nanos() as u64);
    SPENT.set(spent);
    result
}

fn time_key_exchange<R>(work: impl FnOnce() -> R) -> R {
    spend(work, |key_exchange_ns| CryptoTime { key_exchange_ns, ..CryptoTime::default() })
}

/// A group whose key exchanges are timed. rustls and users see the group itself.
#[derive(Debug)]
pub(super) struct TimedGroup(pub(super) &'static dyn SupportedKxGroup);

impl SupportedKxGroup for TimedGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        Ok(Box::new(TimedExchange(time_key_exchange(|| self.0.start())?)))
    }

    fn start_and_complete(&self, peer_pub_key: &[u8]) -> Result<CompletedKeyExchange, Error> {
        time_key_exchange(|| self.0.start_and_complete(peer_pub_key))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.0.ffdhe_group()
    }

    fn name(&self) -> NamedGroup {
        self.0.name()
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        self.0.usable_for_version(version)
    }
}

/// A key exchange that waits for the client's share, as TLS 1.2 has it.
struct TimedExchange(Box<dyn ActiveKeyExchange>);

impl ActiveKeyExchange for TimedExchange {
    fn complete(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, Error> {
        time_key_exchange(|| self.0.complete(peer_pub_key))
    }

    fn complete_for_tls_version(
        self: Box<Self>,
        peer_pub_key: &[u8],
        tls_version: &SupportedProtocolVersion,
    ) -> Result<SharedSecret, Error> {
        time_key_exchange(|| self.0.complete_for_tls_version(peer_pub_key, tls_version))
    }

    fn hybrid_component(&self) -> Option<(NamedGroup, &[u8])> {
        self.0.hybrid_component()
    }

    fn complete_hybrid_component(self: Box<Self>, peer_pub_key: &[u8]) -> Result<SharedSecret, Error> {
        time_key_exchange(|| self.0.complete_hybrid_component(peer_pub_key))
    }

    fn pub_key(&self) -> &[u8] {
        self.0.pub_key()
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.0.ffdhe_group()
    }

    fn group(&self) -> NamedGroup {
        self.0.group()
    }
}

/// A private key whose signatures are timed.
#[derive(Debug)]
struct TimedKey {
    key: Arc<dyn SigningKey>,
    /// One for each scheme, the preferred one first.
    signers: Vec<Arc<dyn Signer>>,
}

/// Makes the signatures of a certificate's key timed ones.
pub(super) fn time_signatures(certified: CertifiedKey) -> CertifiedKey {
    let signers = signers(&*certified.key).map(Arc::from).collect();
    CertifiedKey { key: Arc::new(TimedKey { key: certified.key, signers }), ..certified }
}

/// The schemes that a key can sign with, the preferred one first.
pub(super) fn schemes(key: &dyn SigningKey) -> Vec<SignatureScheme> {
    signers(key).map(|signer| signer.scheme()).collect()
}

fn signers(key: &dyn SigningKey) -> impl Iterator<Item = Box<dyn Signer>> {
    let mut left = aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes();
    std::iter::from_fn(move || {
        let signer = key.choose_scheme(&left)?;
        left.retain(|scheme| *scheme != signer.scheme());
        Some(signer)
    })
}

impl SigningKey for TimedKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let signer = self.signers.iter().find(|signer| offered.contains(&signer.scheme()))?;
        Some(Box::new(TimedSigner(Arc::clone(signer))))
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.key.algorithm()
    }
}

#[derive(Debug)]
struct TimedSigner(Arc<dyn Signer>);

impl Signer for TimedSigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        spend(|| self.0.sign(message), |signature_ns| CryptoTime { signature_ns, ..CryptoTime::default() })
    }

    fn scheme(&self) -> SignatureScheme {
        self.0.scheme()
    }
}

thread_local! {
    static KEYS: Cell<u32> = const { Cell::new(0) };
}

/// Keys for reading TLS 1.3 that were set on this thread since the last call: two by a handshake, one by each
/// `KeyUpdate`. rustls does not report these.
pub(super) fn take_key_count() -> u32 {
    KEYS.take()
}

/// A record protection of TLS 1.3 whose keys for reading are counted.
pub(super) struct CountedAead(&'static dyn Tls13AeadAlgorithm);

impl CountedAead {
    pub(super) const fn of(suite: &'static SupportedCipherSuite) -> Self {
        Self(tls13(suite).aead_alg)
    }

    /// `suite` with this record protection, which is its own.
    pub(super) const fn counted(&'static self, suite: &'static SupportedCipherSuite) -> Tls13CipherSuite {
        let Tls13CipherSuite { common, hkdf_provider, .. } = tls13(suite);
        let CipherSuiteCommon { suite, hash_provider, confidentiality_limit } = common;
        Tls13CipherSuite {
            common: CipherSuiteCommon {
                suite: *suite,
                hash_provider: *hash_provider,
                confidentiality_limit: *confidentiality_limit,
            },
            hkdf_provider: *hkdf_provider,
            aead_alg: self,
            quic: None,
        }
    }
}

const fn tls13(suite: &'static SupportedCipherSuite) -> &'static Tls13CipherSuite {
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite,
        SupportedCipherSuite::Tls12(_) => panic!("a suite of TLS 1.2 has no KeyUpdate"),
    }
}

impl Tls13AeadAlgorithm for CountedAead {
    fn encrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageEncrypter> {
        self.0.encrypter(key, iv)
    }

    fn decrypter(&self, key: AeadKey, iv: Iv) -> Box<dyn MessageDecrypter> {
        KEYS.set(KEYS.get().saturating_add(1));
        self.0.decrypter(key, iv)
    }

    fn key_len(&self) -> usize {
        self.0.key_len()
    }

    fn extract_keys(
        &self,
        key: AeadKey,
        iv: Iv,
    ) -> Result<ConnectionTrafficSecrets, UnsupportedOperationError> {
        self.0.extract_keys(key, iv)
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Certificate;
    use crate::tls::settings::GROUPS;

    #[test]
    fn a_timed_group_is_told_apart_from_the_group_itself_by_time_alone() {
        for (name, group) in GROUPS {
            let _ = CryptoTime::take();
            assert_eq!(format!("{:?}", group.name()).to_lowercase(), *name);
            let client = group.start().unwrap();
            let started = CryptoTime::take();
            let server = group.start_and_complete(client.pub_key()).unwrap();
            let answered = CryptoTime::take();
            assert!(started.key_exchange_ns > 0 && answered.key_exchange_ns > 0, "{name}");
            let secret = client.complete(&server.pub_key).unwrap();
            assert_eq!(secret.secret_bytes(), server.secret.secret_bytes(), "{name}");
            assert!(CryptoTime::take().key_exchange_ns > 0, "{name}");
            assert_eq!(CryptoTime::take(), CryptoTime::default(), "taken once");
        }
    }

    #[test]
    fn a_timed_key_chooses_the_scheme_that_the_key_itself_would() {
        use crate::tls::testing::{TestKey, write};
        use rustls::pki_types::{PrivateKeyDer, pem::PemObject as _};

        let folder = tempfile::tempdir().unwrap();
        for kind in [TestKey::P256, TestKey::P384, TestKey::Ed25519, TestKey::Rsa] {
            let (cert, key) = write(folder.path(), "one", kind, &["a.test"]);
            let timed = Certificate::load(&cert, &key).unwrap().certified();
            let bare = aws_lc_rs::sign::any_supported_type(&PrivateKeyDer::from_pem_file(&key).unwrap());
            let bare = bare.unwrap();
            let all = schemes(&*bare);
            assert!(!all.is_empty() && schemes(&*timed.key) == all, "{kind:?}: {all:?}");
            let chosen = |key: &dyn SigningKey, offered: &[SignatureScheme]| {
                key.choose_scheme(offered).map(|signer| signer.scheme())
            };
            for from in 0..=all.len() {
                let mut offered = all[from..].to_vec();
                offered.reverse();
                assert_eq!(chosen(&*timed.key, &offered), chosen(&*bare, &offered), "{kind:?}");
                assert_eq!(chosen(&*timed.key, &offered), all.get(from).copied(), "{kind:?}");
            }
        }
    }

    #[test]
    fn a_signature_is_timed_and_nothing_else_is() {
        let certified = Certificate::generate(&[]).unwrap().certified();
        let signer = certified.key.choose_scheme(&[SignatureScheme::ECDSA_NISTP256_SHA256]).unwrap();
        let _ = CryptoTime::take();
        signer.sign(b"message").unwrap();
        let spent = CryptoTime::take();
        assert!(spent.signature_ns > 0 && spent.key_exchange_ns == 0, "{spent:?}");
        assert!(certified.keys_match().is_ok(), "it is still the certificate's key");
    }
}
