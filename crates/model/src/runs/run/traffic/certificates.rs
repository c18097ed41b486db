//! The certificates of a run: those that the proxy serves or served.

use records::kinds::heap_size::HeapSize as _;
use records::kinds::{CERTIFICATES_MAX, CertificateRecord};

/// The last record of a certificate.
#[derive(Clone, Debug, Default)]
pub struct KnownCertificate {
    pub record: CertificateRecord,
    /// The names of the runs that serve it; empty unless several are merged.
    pub hosts: Vec<String>,
}

/// The certificates in the order of their first records; of several runs, those in use first, by their end.
#[derive(Clone, Debug, Default)]
pub struct Certificates(Vec<KnownCertificate>);

impl Certificates {
    /// Takes a record over; one that has been replaced gives way to a new one.
    pub(in crate::runs) fn apply(&mut self, record: CertificateRecord) {
        if let Some(known) = self.0.iter_mut().find(|known| known.record.key() == record.key()) {
            known.record = record;
            return;
        }
        if self.0.len() >= CERTIFICATES_MAX {
            let Some(replaced) = self.0.iter().position(|known| known.record.is_replaced) else { return };
            self.0.remove(replaced);
        }
        self.0.push(KnownCertificate { record, hosts: Vec::new() });
    }

    /// The certificates of several named runs: one that several serve counts the handshakes of all. Of too many, those
    /// that end first are kept.
    pub fn merged<'a>(runs: impl IntoIterator<Item = (&'a str, &'a Self)>) -> Self {
        let of_run = |(name, certificates): (&'a str, &'a Self)| {
            certificates.0.iter().map(move |known| (name, &known.record))
        };
        let mut all: Vec<_> = runs.into_iter().flat_map(of_run).collect();
        all.sort_by_key(|(name, record)| (record.is_replaced, record.not_after, *name));
        let mut merged = Self::default();
        for (name, record) in all {
            merged.add(name, record);
        }
        merged
    }

    /// Adds a run's record. A run that has replaced the certificate is not among the hosts of one that others serve.
    fn add(&mut self, host: &str, record: &CertificateRecord) {
        let Some(known) = self.0.iter_mut().find(|known| known.record.key() == record.key()) else {
            if self.0.len() < CERTIFICATES_MAX {
                self.0.push(KnownCertificate { record: record.clone(), hosts: vec![host.to_owned()] });
            }
            return;
        };
        let KnownCertificate { record: sum, hosts } = known;
        sum.handshakes = sum.handshakes.saturating_add(record.handshakes);
        sum.since = sum.since.min(record.since);
        if sum.is_replaced == record.is_replaced {
            hosts.push(host.to_owned());
            for (text, other) in
                [(&mut sum.refusal, &record.refusal), (&mut sum.renewal_error, &record.renewal_error)]
            {
                if text.is_empty() {
                    text.clone_from(other);
                }
            }
        }
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        let bytes_of = |known: &KnownCertificate| {
            let hosts = known.hosts.iter().map(|host| size_of::<String>() + host.len());
            known.record.heap_bytes() + hosts.sum::<usize>()
        };
        self.0.capacity() * size_of::<KnownCertificate>() + self.0.iter().map(bytes_of).sum::<usize>()
    }

    /// All of them.
    pub fn all(&self) -> &[KnownCertificate] {
        &self.0
    }

    /// Those that have not been replaced.
    pub fn served(&self) -> impl Iterator<Item = &CertificateRecord> {
        self.0.iter().map(|known| &known.record).filter(|record| !record.is_replaced)
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
        assert!(
            certificates.all().iter().all(|one| one.record.fingerprint != "7"),
            "a replaced one gives way"
        );
        certificates.apply(CertificateRecord { handshakes: 3, ..record(8, false) });
        let known = certificates.served().find(|one| one.fingerprint == "8").unwrap();
        assert_eq!((certificates.all().len(), known.handshakes), (CERTIFICATES_MAX, 3));
    }

    #[test]
    fn certificates_of_several_hosts_name_those_that_serve_them() {
        let of = |records: &[CertificateRecord]| {
            let mut certificates = Certificates::default();
            records.iter().cloned().for_each(|record| certificates.apply(record));
            certificates
        };
        let ends = |n, not_after| CertificateRecord { not_after, handshakes: 2, ..record(n, false) };
        let refused = CertificateRecord { refusal: "it cannot be read".to_owned(), ..ends(1, 50) };
        let replaced = CertificateRecord { is_replaced: true, ..ends(2, 10) };
        let (a, b) = (of(&[ends(1, 50), replaced]), of(&[ends(2, 10), refused]));
        let merged = Certificates::merged([("a", &a), ("b", &b)]);
        let told = merged.all().iter().map(|KnownCertificate { record, hosts }| {
            (&*record.fingerprint, hosts.join(" "), record.handshakes, &*record.refusal)
        });
        let told: Vec<_> = told.collect();
        assert_eq!(told, [("2", "b".to_owned(), 4, ""), ("1", "a b".to_owned(), 4, "it cannot be read")]);
        assert_eq!(merged.served().count(), 2);
        let many: Vec<_> = (0..CERTIFICATES_MAX).map(|n| ends(n, 100)).collect();
        let (first, many) = (of(&[ends(999, 1)]), of(&many));
        let merged = Certificates::merged([("a", &many), ("b", &first)]);
        assert_eq!((merged.all().len(), &*merged.all()[0].hosts[0]), (CERTIFICATES_MAX, "b"));
    }
}
