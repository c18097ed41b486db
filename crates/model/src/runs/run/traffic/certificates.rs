//! The certificates of a run: those that the proxy serves or served.

use crate::runs::run::aligned::AlignedRun;
use records::kinds::heap_size::HeapSize;
use records::kinds::{CERTIFICATES_MAX, CertificateRecord};

/// The last record of each certificate, in the order of their first ones.
#[derive(Clone, Debug, Default)]
pub struct Certificates(Vec<CertificateRecord>);

impl Certificates {
    /// Takes a record over; one that has been replaced gives way to a new one.
    pub(in crate::runs) fn apply(&mut self, record: CertificateRecord) {
        if let Some(known) = self.0.iter_mut().find(|known| known.key() == record.key()) {
            *known = record;
            return;
        }
        if self.0.len() >= CERTIFICATES_MAX {
            let Some(replaced) = self.0.iter().position(|known| known.is_replaced) else { return };
            self.0.remove(replaced);
        }
        self.0.push(record);
    }

    /// The certificates of several runs: one that several serve counts the handshakes of all.
    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let mut merged = Self::default();
        for record in members.iter().flat_map(|(_, certificates)| &certificates.0) {
            let same = merged.0.iter_mut().find(|known| known.key() == record.key());
            match same {
                Some(known) => {
                    let handshakes = known.handshakes.saturating_add(record.handshakes);
                    let is_replaced = known.is_replaced && record.is_replaced;
                    let since = known.since.min(record.since);
                    *known = CertificateRecord { handshakes, is_replaced, since, ..record.clone() };
                }
                None => merged.apply(record.clone()),
            }
        }
        merged
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<CertificateRecord>()
            + self.0.iter().map(HeapSize::heap_bytes).sum::<usize>()
    }

    /// All of them.
    pub fn all(&self) -> &[CertificateRecord] {
        &self.0
    }

    /// Those that have not been replaced.
    pub fn served(&self) -> impl Iterator<Item = &CertificateRecord> {
        self.0.iter().filter(|record| !record.is_replaced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: usize, is_replaced: bool) -> CertificateRecord {
        CertificateRecord { fingerprint: n.to_string(), is_replaced, ..CertificateRecord::default() }
    }

    #[test]
    fn a_hostile_journal_adds_no_more_than_the_bound() {
        let mut certificates = Certificates::default();
        for n in 0..10 * CERTIFICATES_MAX {
            certificates.apply(record(n, n == 7));
        }
        assert_eq!(certificates.all().len(), CERTIFICATES_MAX);
        assert!(certificates.all().iter().all(|one| one.fingerprint != "7"), "a replaced one gives way");
        certificates.apply(CertificateRecord { handshakes: 3, ..record(8, false) });
        let known = certificates.served().find(|one| one.fingerprint == "8").unwrap();
        assert_eq!((certificates.all().len(), known.handshakes), (CERTIFICATES_MAX, 3));
    }
}
