//! Usage: handshakes and bytes by version, group, cipher suite, signature, protocol, certificate, server name and
//! fingerprint. All of it is bounded, whatever clients send.

use foldhash::{HashMap, HashMapExt as _};
use records::delta::{OTHER_VALUE, USAGE_VALUES_MAX, UsageDelta};
use records::metrics::{Counters, Dimension, FullReason, UsageCounter};
use records::text::clean;

use crate::tls::{NegotiatedTls, SingleChoices};

/// The most combinations of negotiated values that are counted separately. There are a few dozen.
const COMBINATIONS_MAX: usize = 256;
/// The value of a missing parameter.
const NO_VALUE: &str = "none";

/// Where the traffic of a connection is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageSlots {
    /// `None` if TLS was passed to an upstream.
    combination: Option<u16>,
    certificate: Option<u16>,
    name: Option<u16>,
    fingerprint: Option<u16>,
}

#[derive(Debug)]
pub(crate) struct UsageCounts {
    combinations: Vec<Combination>,
    certificates: Values,
    names: Values,
    fingerprints: Values,
    issuers: Values,
    /// Whether names and fingerprints, which are clients' data, are counted and recorded.
    pub(crate) records_names: bool,
}

impl UsageCounts {
    pub(crate) fn new(records_names: bool) -> Self {
        Self {
            combinations: Vec::new(),
            certificates: Values::new(Dimension::Certificate),
            names: Values::new(Dimension::Name),
            fingerprints: Values::new(Dimension::Fingerprint),
            issuers: Values::new(Dimension::Issuer),
            records_names,
        }
    }

    /// Counts a handshake that is complete; `reason`: why it was full.
    pub(crate) fn handshake(
        &mut self,
        session: &NegotiatedTls<'_>,
        reason: Option<FullReason>,
        compute_ns: u64,
    ) -> UsageSlots {
        let counted = counted(session, reason, compute_ns);
        let combination = self.combination(session);
        self.combinations[usize::from(combination)].add(&counted, session.single_choices());
        session.count_certificate();
        let client = self.client(session, &counted);
        if self.records_names
            && let Some(issuer) = session.client_issuer()
        {
            self.issuers.add(issuer.as_bytes(), &counted);
        }
        UsageSlots {
            combination: Some(combination),
            certificate: session.certificate().map(|name| self.certificates.add(name.as_bytes(), &counted)),
            ..client
        }
    }

    /// Counts a connection whose TLS is passed to an upstream.
    pub(crate) fn passed(&mut self, session: &NegotiatedTls<'_>) -> UsageSlots {
        self.client(session, &[(UsageCounter::Passed, 1)])
    }

    /// Counts a handshake that failed after its `ClientHello` was read.
    pub(crate) fn failed(&mut self, session: &NegotiatedTls<'_>) {
        if session.hello().is_some() {
            let counted = [(UsageCounter::HandshakesFailed, 1)];
            self.client(session, &counted);
            if self.records_names
                && let Some(refused) = session.refused_certificate()
            {
                self.issuers.add(refused.issuer.as_bytes(), &counted);
            }
        }
    }

    fn client(&mut self, session: &NegotiatedTls<'_>, counted: &Increments) -> UsageSlots {
        let mut slots = UsageSlots::default();
        if self.records_names {
            let name = Some(session.raw_server_name()).filter(|name| !name.is_empty()).unwrap_or(NO_VALUE);
            let slot = self.names.add(name.as_bytes(), counted);
            if session.is_name_uncovered() {
                self.names.add_at(slot, &[(UsageCounter::NotCovered, 1)]);
            }
            slots.name = Some(slot);
            slots.fingerprint = session.fingerprint().map(|text| self.fingerprints.add(text, counted));
        }
        slots
    }

    /// Counts the bytes of an ended connection.
    pub(crate) fn closed(&mut self, slots: UsageSlots, bytes_in: u64, bytes_out: u64) {
        let counted = [(UsageCounter::BytesIn, bytes_in), (UsageCounter::BytesOut, bytes_out)];
        if let Some(combination) = slots.combination {
            self.combinations[usize::from(combination)].add(&counted, SingleChoices::default());
        }
        let values = [
            (&mut self.certificates, slots.certificate),
            (&mut self.names, slots.name),
            (&mut self.fingerprints, slots.fingerprint),
        ];
        for (values, slot) in values {
            if let Some(slot) = slot {
                values.add_at(slot, &counted);
            }
        }
    }

    /// Moves the counts into a delta.
    pub(crate) fn hand_over(&mut self, into: &mut Vec<UsageDelta>) {
        for combination in &mut self.combinations {
            combination.hand_over(into);
        }
        for values in [&mut self.certificates, &mut self.names, &mut self.fingerprints, &mut self.issuers] {
            values.hand_over(into);
        }
    }

    fn combination(&mut self, session: &NegotiatedTls<'_>) -> u16 {
        let known = self.combinations.iter().position(|one| one.is_of(session));
        let place = known.unwrap_or_else(|| {
            let has_room = self.combinations.len() < COMBINATIONS_MAX;
            let new = if has_room { Combination::new(session) } else { Combination::other(session) };
            let same = self.combinations.iter().position(|one| !has_room && one.key == new.key);
            same.unwrap_or_else(|| {
                self.combinations.push(new);
                self.combinations.len() - 1
            })
        });
        place as u16
    }
}

type Increments = [(UsageCounter, u64)];

fn add(counters: &mut Counters<UsageCounter>, counted: &Increments) {
    for &(counter, n) in counted {
        counters[counter] += n;
    }
}

fn counted(
    session: &NegotiatedTls<'_>,
    reason: Option<FullReason>,
    compute_ns: u64,
) -> [(UsageCounter, u64); 3] {
    let (handshakes, compute) = if session.is_resumed() {
        (UsageCounter::HandshakesResumed, UsageCounter::ComputeResumedNs)
    } else {
        (UsageCounter::HandshakesFull, UsageCounter::ComputeFullNs)
    };
    let reason = reason.and_then(FullReason::usage_counter);
    [(handshakes, 1), (compute, compute_ns), reason.map_or((handshakes, 0), |reason| (reason, 1))]
}

/// Identifies combinations: the numbers of [`NegotiatedTls::combination`], and whether the handshake was full.
type CombinationKey = ([u16; 4], bool);

#[derive(Debug)]
struct Combination {
    key: CombinationKey,
    alpn: Box<[u8]>,
    /// The dimensions that it counts for, with its values.
    values: Vec<(Dimension, Box<str>)>,
    counters: Counters<UsageCounter>,
    /// Handshakes without another choice, by version, group and cipher suite.
    single: [u64; 3],
}

impl Combination {
    fn new(session: &NegotiatedTls<'_>) -> Self {
        let alpn = Some(session.alpn()).filter(|alpn| !alpn.is_empty());
        let values = [
            (Dimension::Version, Some(session.version_name().to_owned())),
            (Dimension::Group, Some(session.group_name().to_owned()).filter(|name| !name.is_empty())),
            (Dimension::Cipher, Some(session.cipher_name())),
            (Dimension::Signature, session.signature_name().map(str::to_owned)),
            (Dimension::Alpn, Some(alpn.unwrap_or_else(|| NO_VALUE.to_owned()))),
        ];
        let values = values.into_iter().filter_map(|(dimension, value)| Some((dimension, value?.into())));
        Self {
            key: (session.combination(), session.is_resumed()),
            alpn: session.raw_alpn().into(),
            values: values.collect(),
            counters: Counters::default(),
            single: [0; 3],
        }
    }

    /// The counts of combinations beyond the limit.
    fn other(session: &NegotiatedTls<'_>) -> Self {
        let new = Self::new(session);
        let values = new.values.into_iter().map(|(dimension, _)| (dimension, OTHER_VALUE.into())).collect();
        Self { key: ([u16::MAX; 4], session.is_resumed()), alpn: Box::default(), values, ..new }
    }

    fn is_of(&self, session: &NegotiatedTls<'_>) -> bool {
        self.key == (session.combination(), session.is_resumed()) && *self.alpn == *session.raw_alpn()
    }

    fn add(&mut self, counted: &Increments, single: SingleChoices) {
        add(&mut self.counters, counted);
        for (sum, is_single) in self.single.iter_mut().zip([single.version, single.group, single.cipher]) {
            *sum += u64::from(is_single);
        }
    }

    fn hand_over(&mut self, into: &mut Vec<UsageDelta>) {
        let counters = std::mem::take(&mut self.counters);
        if counters.is_zero() {
            return;
        }
        let [version, group, cipher] = std::mem::take(&mut self.single);
        for (dimension, value) in &self.values {
            let mut counters = counters;
            counters[UsageCounter::OnlyChoice] = match dimension {
                Dimension::Version => version,
                Dimension::Group => group,
                Dimension::Cipher => cipher,
                _ => 0,
            };
            match into.iter_mut().find(|row| row.dimension == *dimension && row.value == *value) {
                Some(row) => row.counters.add(&counters),
                None => into.push(UsageDelta { dimension: *dimension, value: value.clone(), counters }),
            }
        }
    }
}

/// The values of one dimension: the first that come, and `other` for all further ones.
#[derive(Debug)]
struct Values {
    dimension: Dimension,
    slots: HashMap<Box<[u8]>, u16>,
    rows: Vec<ValueRow>,
    changed: Vec<u16>,
    /// The slot that was looked up last: many dimensions have few values.
    last: u16,
}

#[derive(Debug)]
struct ValueRow {
    /// Made printable.
    value: Box<str>,
    counters: Counters<UsageCounter>,
    is_changed: bool,
}

impl Values {
    fn new(dimension: Dimension) -> Self {
        Self { dimension, slots: HashMap::new(), rows: Vec::new(), changed: Vec::new(), last: 0 }
    }

    fn add(&mut self, value: &[u8], counted: &Increments) -> u16 {
        let last = self.rows.get(usize::from(self.last));
        if last.is_none_or(|row| row.value.as_bytes() != value) {
            self.last = self.slot(value);
        }
        self.add_at(self.last, counted);
        self.last
    }

    fn add_at(&mut self, slot: u16, counted: &Increments) {
        let row = &mut self.rows[usize::from(slot)];
        add(&mut row.counters, counted);
        if !row.is_changed {
            row.is_changed = true;
            self.changed.push(slot);
        }
    }

    fn slot(&mut self, value: &[u8]) -> u16 {
        if let Some(&slot) = self.slots.get(value) {
            return slot;
        }
        if self.rows.len() >= USAGE_VALUES_MAX && value != OTHER_VALUE.as_bytes() {
            return self.slot(OTHER_VALUE.as_bytes());
        }
        let slot = self.rows.len() as u16;
        let printable = clean::bytes(value).into();
        self.rows.push(ValueRow { value: printable, counters: Counters::default(), is_changed: false });
        self.slots.insert(value.into(), slot);
        slot
    }

    fn hand_over(&mut self, into: &mut Vec<UsageDelta>) {
        for slot in self.changed.drain(..) {
            let row = &mut self.rows[usize::from(slot)];
            row.is_changed = false;
            let counters = std::mem::take(&mut row.counters);
            into.push(UsageDelta { dimension: self.dimension, value: row.value.clone(), counters });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_names_do_not_grow_memory_and_their_sum_is_exact() {
        let mut names = Values::new(Dimension::Name);
        let one = [(UsageCounter::HandshakesFull, 1)];
        let mut sum = 0;
        for n in 0..1_000_000 {
            names.add(format!("{n}.test").as_bytes(), &one);
            if n % 100_000 == 0 {
                sum += handed_over(&mut names);
            }
        }
        assert_eq!(sum + handed_over(&mut names), 1_000_000);
        assert_eq!((names.rows.len(), names.slots.len()), (USAGE_VALUES_MAX + 1, USAGE_VALUES_MAX + 1));
        assert!(names.changed.capacity() <= 2 * USAGE_VALUES_MAX);
        assert_eq!(&*names.rows[USAGE_VALUES_MAX].value, OTHER_VALUE);
    }

    fn handed_over(values: &mut Values) -> u64 {
        let mut rows = Vec::new();
        values.hand_over(&mut rows);
        rows.iter().map(|row| row.counters[UsageCounter::HandshakesFull]).sum()
    }

    #[test]
    fn a_value_is_handed_over_only_if_it_has_changed() {
        let mut names = Values::new(Dimension::Name);
        let one = [(UsageCounter::HandshakesFull, 1)];
        let slot = names.add(b"a.test", &one);
        assert_eq!(names.add(b"b.test", &one), slot + 1);
        assert_eq!(handed_over(&mut names), 2);
        assert_eq!(handed_over(&mut names), 0);
        names.add_at(slot, &one);
        let mut rows = Vec::new();
        names.hand_over(&mut rows);
        assert_eq!((rows.len(), &*rows[0].value), (1, "a.test"));
    }
}
