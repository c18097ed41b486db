//! A certificate that is served.

use std::rc::Rc;

use model::insight::Expiry;
use model::runs::{Certificates, KnownCertificate, Run};
use records::kinds::CertificateRecord;
use records::metrics::{CertificateRefusal, Dimension, UsageCounter};

use crate::table::NameId;
use crate::theme::format;

#[derive(Clone, Debug)]
pub(crate) struct CertificateRow {
    pub(crate) id: NameId,
    pub(crate) record: Rc<CertificateRecord>,
    /// The hosts that serve it; empty unless several are watched.
    pub(crate) hosts: String,
    /// Seconds since 1970.
    now: u64,
}

impl CertificateRow {
    /// Those that are served at a moment, in seconds since 1970; the one that ends first is the first.
    pub(crate) fn all(certificates: &Certificates, now: u64) -> Vec<Self> {
        let row = |KnownCertificate { record, hosts }: &KnownCertificate| {
            let (file, fingerprint) = record.key();
            let id = NameId::of(&format!("{file} {fingerprint}"));
            Self { id, record: Rc::new(record.clone()), hosts: hosts.join(" "), now }
        };
        let served = certificates.all().iter().filter(|known| !known.record.is_replaced);
        let mut rows: Vec<Self> = served.map(row).collect();
        rows.sort_by_key(|row| row.record.not_after);
        rows
    }

    pub(crate) fn expiry(&self) -> Expiry {
        Expiry::at(&self.record, self.now)
    }

    /// Whether an OCSP response in force is stapled; empty if none is, and none has to be.
    pub(crate) fn stapled(&self) -> &'static str {
        if self.record.lacks_staple(self.now) {
            "missing"
        } else if self.record.stapled_until > self.now {
            "yes"
        } else {
            ""
        }
    }

    /// How long it has been served.
    pub(crate) fn served_for(&self) -> String {
        format::age(self.now.saturating_sub(self.record.since))
    }

    pub(crate) fn needs_care(&self) -> bool {
        self.expiry().severity.is_some() || self.record.lacks_staple(self.now) || !self.remark().is_empty()
    }

    /// What is wrong with it.
    pub(crate) fn remark(&self) -> &str {
        let CertificateRecord { refusal, renewal_error, faults, .. } = &*self.record;
        [refusal, renewal_error].into_iter().find(|text| !text.is_empty()).unwrap_or(faults)
    }
}

/// Issuers that are named with refusals.
const ISSUERS_MAX: usize = 3;

/// Refusals of clients' certificates since the start: by cause, and by the issuers with most of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientRefusals {
    pub(crate) total: u64,
    pub(crate) causes: Vec<(&'static str, u64)>,
    pub(crate) issuers: Vec<(String, u64)>,
}

impl ClientRefusals {
    pub(crate) fn of(run: &Run) -> Self {
        let Some(proxy) = run.proxy() else { return Self::default() };
        let totals = proxy.totals();
        let counted = CertificateRefusal::ALL.map(|(_, counter, words)| (words, totals[counter]));
        let mut causes: Vec<_> = counted.into_iter().filter(|(_, n)| *n > 0).collect();
        causes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let issuers = run.usage().of(Dimension::Issuer);
        let failed = issuers.map(|(name, counters)| (name, counters[UsageCounter::HandshakesFailed]));
        let mut issuers: Vec<_> = failed.filter(|(_, n)| *n > 0).collect();
        issuers.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let issuers = issuers.into_iter().take(ISSUERS_MAX).map(|(name, n)| (name.to_owned(), n)).collect();
        let total = causes.iter().fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
        Self { total, causes, issuers }
    }
}
