//! The publisher's table of certificates: their last records, and which are due.

use super::{PendingRecord, Publisher, Sink};
use records::kinds::{CERTIFICATES_MAX, CertificateRecord};

/// How soon a certificate gets a record again if only its handshakes have changed, in microseconds.
const TURN_US_MIN: u64 = 2_000_000;
/// Of many whose handshakes have changed, one in so many gets a record in an interval: each about every ten seconds.
const TURNS: usize = 10;
/// How often an unchanged certificate gets a record, in microseconds: a reader that begins later learns of it.
const REPEAT_US: u64 = 60_000_000;

#[derive(Debug, Default)]
pub(super) struct CertificateTable {
    rows: Vec<PublishedCertificate>,
}

#[derive(Debug)]
struct PublishedCertificate {
    /// As it is now.
    record: CertificateRecord,
    /// Its last record, and when that was written.
    sent: Option<(CertificateRecord, u64)>,
}

impl<S: Sink> Publisher<S> {
    /// Takes over the certificates as they are now, before an interval ends.
    pub fn set_certificates(&mut self, present: Vec<CertificateRecord>) {
        self.certificates.update(present);
    }

    /// Changes of certificates that no record has carried yet.
    pub(super) fn plan_last_certificates(&mut self) {
        let changed = self.certificates.changed().cloned().map(Box::new);
        self.pending_records.extend(changed.map(PendingRecord::Certificate));
    }
}

impl CertificateTable {
    /// Takes over the certificates as they are now. One that is not among them has been replaced, and is forgotten once
    /// that is written.
    pub(super) fn update(&mut self, present: Vec<CertificateRecord>) {
        // A replaced one that is still listed keeps its row: without it, it would count as new, and be written again.
        self.rows
            .retain(|row| !row.is_over() || present.iter().any(|record| record.key() == row.record.key()));
        for row in &mut self.rows {
            row.record.is_replaced |= !present.iter().any(|record| record.key() == row.record.key());
        }
        for record in present {
            if let Some(row) = self.rows.iter_mut().find(|row| row.record.key() == record.key()) {
                row.record = record;
            } else if self.rows.len() < CERTIFICATES_MAX {
                self.rows.push(PublishedCertificate { record, sent: None });
            }
        }
    }

    /// The records that are due at `now_us`, at most `budget`: those that have waited longest first.
    pub(super) fn due(&self, budget: usize, now_us: u64) -> Vec<CertificateRecord> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|row| row.sent.as_ref().map_or(0, |(_, sent_us)| *sent_us));
        let (mut due, others): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.is_due(now_us));
        let counted: Vec<_> = others.into_iter().filter(|row| row.has_counted(now_us)).collect();
        let in_turn = counted.len().div_ceil(TURNS);
        due.extend(counted.into_iter().take(in_turn));
        due.into_iter().take(budget).map(|row| row.record.clone()).collect()
    }

    /// The records of all that have changed since their last one.
    pub(super) fn changed(&self) -> impl Iterator<Item = &CertificateRecord> {
        self.rows.iter().filter(|row| row.is_changed()).map(|row| &row.record)
    }

    /// Notes that a record has been written.
    pub(super) fn sent(&mut self, record: &CertificateRecord, now_us: u64) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.record.key() == record.key()) {
            row.sent = Some((record.clone(), now_us));
        }
    }
}

impl PublishedCertificate {
    fn is_changed(&self) -> bool {
        self.sent.as_ref().is_none_or(|(sent, _)| *sent != self.record)
    }

    fn is_due(&self, now_us: u64) -> bool {
        let Some((sent, sent_us)) = &self.sent else { return true };
        let age_us = now_us.saturating_sub(*sent_us);
        let counted = CertificateRecord { handshakes: self.record.handshakes, ..sent.clone() };
        counted != self.record || age_us >= REPEAT_US
    }

    /// Whether its handshakes have changed since its last record, and that is old enough.
    fn has_counted(&self, now_us: u64) -> bool {
        let age_us = self.sent.as_ref().map_or(0, |(_, sent_us)| now_us.saturating_sub(*sent_us));
        self.is_changed() && age_us >= TURN_US_MIN
    }

    /// Whether its last record, that it has been replaced, is written.
    fn is_over(&self) -> bool {
        self.record.is_replaced && !self.is_changed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(n: usize, handshakes: u64) -> CertificateRecord {
        CertificateRecord { fingerprint: n.to_string(), handshakes, ..CertificateRecord::default() }
    }

    #[test]
    fn a_certificate_is_written_when_it_changes_and_now_and_then() {
        let mut table = CertificateTable::default();
        table.update(vec![record(1, 0)]);
        let due = table.due(9, 0);
        assert_eq!(due, [record(1, 0)]);
        table.sent(&due[0], 0);
        assert!(table.due(9, TURN_US_MIN).is_empty());
        table.update(vec![record(1, 5)]);
        assert!(table.due(9, TURN_US_MIN - 1).is_empty(), "handshakes alone wait for their turn");
        assert_eq!(table.due(9, TURN_US_MIN), [record(1, 5)]);
        table.sent(&record(1, 5), TURN_US_MIN);
        assert_eq!(table.due(9, TURN_US_MIN + REPEAT_US).len(), 1);
        // It is replaced.
        table.update(vec![record(2, 0)]);
        let due = table.due(9, TURN_US_MIN + 1);
        assert_eq!(due.iter().filter(|record| record.is_replaced).count(), 1);
        for record in &due {
            table.sent(record, TURN_US_MIN + 1);
        }
        table.update(vec![record(2, 0)]);
        assert_eq!(table.rows.len(), 1);
    }

    #[test]
    fn a_replaced_certificate_that_is_still_listed_is_written_once() {
        let replaced = CertificateRecord { is_replaced: true, ..record(1, 5) };
        let mut table = CertificateTable::default();
        for second in 0..10 {
            table.update(vec![record(2, 0), replaced.clone()]);
            let due = table.due(9, second * 1_000_000);
            assert_eq!(due.len(), if second == 0 { 2 } else { 0 }, "in second {second}: {due:?}");
            for record in &due {
                table.sent(record, second * 1_000_000);
            }
        }
    }

    #[test]
    fn certificates_are_bounded_and_take_turns() {
        let mut table = CertificateTable::default();
        table.update((0..2 * CERTIFICATES_MAX).map(|n| record(n, 0)).collect());
        assert_eq!(table.rows.len(), CERTIFICATES_MAX);
        let first = table.due(10, 1);
        for record in &first {
            table.sent(record, 1);
        }
        let second = table.due(10, 2);
        assert!(second.len() == 10 && second.iter().all(|record| !first.contains(record)));
        // Where only handshakes have changed, of many a tenth has its turn.
        (0..40).for_each(|n| table.sent(&record(n, 0), 3));
        table.rows.truncate(40);
        table.update((0..40).map(|n| record(n, 1)).collect());
        assert_eq!(table.due(40, 3 + TURN_US_MIN).len(), 4);
    }
}
