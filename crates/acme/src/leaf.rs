//! The certificate in the store, as far as its renewal needs to know it.

use std::fs;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::time::ASN1Time;

use crate::schedule::Validity;
use crate::store::AcmeStore;

pub(crate) struct Leaf {
    pub(crate) der: CertificateDer<'static>,
    pub(crate) validity: Validity,
}

impl Leaf {
    /// `None` if there is none, or one that nobody could use.
    pub(crate) fn read(store: &AcmeStore) -> Option<Self> {
        Self::of(&fs::read(store.certificate()).ok()?)
    }

    /// The first certificate of a key and its chain in PEM; `None` if nobody could use the two.
    pub(crate) fn of(pem: &[u8]) -> Option<Self> {
        static PROVIDER: LazyLock<CryptoProvider> = LazyLock::new(aws_lc_rs::default_provider);
        let key = PrivateKeyDer::from_pem_slice(pem).ok()?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
        let certified = CertifiedKey::from_der(chain.ok()?, key, &PROVIDER).ok()?;
        let der = certified.cert.first()?;
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let validity = certificate.validity();
        let validity =
            Validity { not_before: moment(validity.not_before), not_after: moment(validity.not_after) };
        Some(Self { der: der.clone(), validity })
    }
}

fn moment(time: ASN1Time) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(time.timestamp().max(0).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use rcgen::generate_simple_self_signed;

    use super::*;

    #[test]
    fn only_a_certificate_with_its_own_key_can_be_used() {
        let [one, other] = [(); 2].map(|()| generate_simple_self_signed(vec!["a.test".to_owned()]).unwrap());
        let pem = |key: &str, chain: &str| Leaf::of(format!("{key}{chain}").as_bytes()).is_some();
        let key = one.signing_key.serialize_pem();
        assert!(pem(&key, &one.cert.pem()));
        assert!(!pem(&key, &other.cert.pem()), "the key of another one");
        assert!(!pem(&key, &(other.cert.pem() + &one.cert.pem())), "in the wrong order");
        for garbage in
            ["", "<html>hello</html>", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
        {
            assert!(!pem(&key, garbage), "{garbage}");
        }
        assert!(!pem("", &one.cert.pem()));
    }
}
