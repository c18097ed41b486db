//! The certificates that clients get as records: what each holds, how often it was presented, and what has replaced it.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use records::kinds::{CERTIFICATES_MAX, CertificateRecord};
use records::text::clean;

use crate::tls::Certificate;
use crate::tls::certificates::error::TlsFileWarning;
use crate::tls::certificates::files::{FileOrigin, FromFiles as _};
use crate::tls::clock::unix_now;

/// Names that a record lists; further ones are counted.
const NAMES_MAX: usize = 16;
/// Replaced certificates that are kept: handshakes with them may still end.
const REPLACED_MAX: usize = 16;

/// What is counted of a certificate. The workers share it.
#[derive(Debug)]
pub(in crate::tls) struct CertificateUse {
    /// Its name in counters.
    pub(in crate::tls) label: Box<str>,
    /// Full handshakes in which it was presented.
    handshakes: AtomicU64,
    /// When it was loaded, in seconds since 1970.
    since: u64,
}

impl CertificateUse {
    pub(in crate::tls) fn new(label: Box<str>) -> Self {
        Self { label, handshakes: AtomicU64::new(0), since: unix_now() }
    }

    /// Counts a full handshake.
    pub(in crate::tls) fn count(&self) {
        self.handshakes.fetch_add(1, Ordering::Relaxed);
    }
}

/// The certificates that a running proxy may present, readable from any thread. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PresentedCertificates {
    /// The leaf certificates in use, and the replaced ones, with which handshakes may still be in progress. Written by
    /// the thread that checks the files, and read by clients within this process; no worker of the proxy touches it.
    leaves: Arc<RwLock<Vec<Vec<u8>>>>,
}

impl PresentedCertificates {
    /// Whether this certificate, in DER, is one of them.
    pub fn contains(&self, der: &[u8]) -> bool {
        self.leaves.read().unwrap_or_else(PoisonError::into_inner).iter().any(|leaf| leaf == der)
    }

    pub(in crate::tls) fn replace(&self, leaves: Vec<Vec<u8>>) {
        *self.leaves.write().unwrap_or_else(PoisonError::into_inner) = leaves;
    }
}

/// What became of the certificates' files during a run.
#[derive(Debug, Default)]
pub(in crate::tls) struct ServedHistory {
    replaced: VecDeque<Certificate>,
    /// Why a certificate's files, as they are now, are not in use, by its place.
    refusals: BTreeMap<usize, String>,
}

impl ServedHistory {
    /// Notes that the files at this place cannot be used.
    pub(in crate::tls) fn refuse(&mut self, place: usize, reason: &str) {
        self.refusals.insert(place, clean::text(reason));
    }

    /// Notes that `new`, from the files at this place, takes the place of `old`. Counts go on if it is the same
    /// certificate, also with another chain, or one that `old` had replaced.
    pub(in crate::tls) fn replace(&mut self, place: usize, old: &Certificate, new: &mut Certificate) {
        self.refusals.remove(&place);
        if new.leaf_der() == old.leaf_der() {
            new.usage = old.usage();
            return;
        }
        let record = new.record();
        let restored = self.replaced.iter().position(|one| one.record().key() == record.key());
        if let Some(restored) = restored.and_then(|at| self.replaced.remove(at)) {
            new.usage = restored.usage();
        }
        if self.replaced.len() >= REPLACED_MAX {
            self.replaced.pop_front();
        }
        self.replaced.push_back(old.clone());
    }

    /// The records of `present` and of those that they have replaced. Of too many, the first ones: which they are does not
    /// change while the proxy runs.
    pub(in crate::tls) fn records(&self, present: &[Certificate]) -> Vec<CertificateRecord> {
        let served = present.iter().enumerate().map(|(place, certificate)| CertificateRecord {
            is_default: place == 0,
            refusal: self.refusals.get(&place).cloned().unwrap_or_else(|| certificate.response_refusal()),
            ..certificate.record()
        });
        let replaced =
            self.replaced.iter().map(|one| CertificateRecord { is_replaced: true, ..one.record() });
        served.chain(replaced).take(CERTIFICATES_MAX).collect()
    }
}

impl Certificate {
    fn record(&self) -> CertificateRecord {
        let description = &self.description;
        let names = description.names.iter().take(NAMES_MAX).map(|name| clean::text(name));
        let path = self.origin().map(FileOrigin::paths).and_then(<[_]>::first);
        let seconds = |unix: i64| unix.max(0).cast_unsigned();
        CertificateRecord {
            fingerprint: description.fingerprint.clone(),
            file: path.map(|path| file(path)).unwrap_or_default(),
            names: names.collect::<Vec<_>>().join(" "),
            more_names: description.names.len().saturating_sub(NAMES_MAX) as u64,
            issuer: description.issuer.clone(),
            serial: description.serial.clone(),
            key: description.kind.clone(),
            chain: self.certified.cert.len() as u64,
            chain_bytes: self.chain_der().map(|der| der.len() as u64).sum(),
            not_before: seconds(description.not_before.unix),
            not_after: seconds(description.not_after.unix),
            since: self.usage.since,
            handshakes: self.usage.handshakes.load(Ordering::Relaxed),
            stapled_until: self.stapled_until,
            must_staple: description.must_staple,
            faults: self.faults.join("; "),
            ..CertificateRecord::default()
        }
    }

    /// Why the OCSP response in its file is not stapled; empty if it is, or there is none.
    fn response_refusal(&self) -> String {
        let refusal = self.warnings.iter().find(|one| matches!(one, TlsFileWarning::NotStapled { .. }));
        refusal.map(|warning| clean::text(&warning.to_string())).unwrap_or_default()
    }

    /// Where handshakes with it are counted.
    pub(in crate::tls) fn usage(&self) -> Arc<CertificateUse> {
        Arc::clone(&self.usage)
    }
}

fn file(path: &Path) -> String {
    clean::text(&path.to_string_lossy())
}
