//! The certificate in the store, as far as its renewal needs to know it.

use std::fs;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
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
        let text = fs::read(store.certificate()).ok()?;
        PrivateKeyDer::from_pem_slice(&text).ok()?;
        let der = CertificateDer::from_pem_slice(&text).ok()?;
        let (_, certificate) = X509Certificate::from_der(&der).ok()?;
        let validity = certificate.validity();
        let validity =
            Validity { not_before: moment(validity.not_before), not_after: moment(validity.not_after) };
        Some(Self { der: der.clone(), validity })
    }
}

fn moment(time: ASN1Time) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(time.timestamp().max(0).cast_unsigned())
}
