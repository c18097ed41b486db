//! What the parts of a handshake cost on this machine, as a calibration has measured them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::field;
use crate::record::wire::wire;

/// Most costs of one table; further ones of a hostile journal are dropped.
const COSTS_MAX: usize = 64;

/// CPU time of one operation, in nanoseconds: the medians of several slices of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 3]", into = "[u64; 3]")]
pub struct Cost {
    /// The median of the cheapest slice.
    pub low_ns: u64,
    /// The median of all slices.
    pub median_ns: u64,
    /// The median of the most expensive slice.
    pub high_ns: u64,
}

impl From<[u64; 3]> for Cost {
    fn from([low_ns, median_ns, high_ns]: [u64; 3]) -> Self {
        Self { low_ns: low_ns.min(median_ns), median_ns, high_ns: high_ns.max(median_ns) }
    }
}

impl From<Cost> for [u64; 3] {
    fn from(cost: Cost) -> Self {
        [cost.low_ns, cost.median_ns, cost.high_ns]
    }
}

impl Cost {
    /// From the median of each slice, in nanoseconds; `None` without one.
    pub fn of_slices(slices: &mut [u64]) -> Option<Self> {
        slices.sort_unstable();
        let (&low_ns, &high_ns) = (slices.first()?, slices.last()?);
        Some(Self { low_ns, median_ns: slices[slices.len() / 2], high_ns })
    }
}

/// Costs by name.
///
/// As text a JSON object: `{"x25519":[31000,32000,35000]}` with lowest, median and highest in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CostTable(BTreeMap<String, Cost>);

impl CostTable {
    /// The cost of this name. Case does not matter: `X25519MLKEM768` and `x25519mlkem768` are one group.
    pub fn of(&self, name: &str) -> Option<Cost> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, cost)| cost)
    }

    /// Adds one.
    pub fn insert(&mut self, name: &str, cost: Cost) {
        self.0.insert(name.to_owned(), cost);
    }

    /// Each with its name, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Cost)> {
        self.0.iter().map(|(name, cost)| (name.as_str(), *cost))
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same with printable names, and no more than a calibration makes.
    pub(crate) fn cleaned(self) -> Self {
        let costs = self.0.into_iter().take(COSTS_MAX);
        Self(costs.map(|(name, cost)| (crate::record::clean::text(&name), cost)).collect())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.keys().map(|name| size_of::<(String, Cost)>() + name.capacity()).sum()
    }
}

/// The rest of a full handshake in [`HandshakeCosts::rest`], after the version's name.
pub const FULL: &str = "full";
/// The same of a resumed one.
pub const RESUMED: &str = "resumed";

wire! {
    /// What the parts of a handshake cost on this machine.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct HandshakeCosts {
        /// CPU time that measuring took, in microseconds.
        pub took_us: u64 = &field::CALIBRATION_CPU,
        /// The proxy's part of a key exchange, by the group's IANA name.
        pub key_exchange: CostTable = &field::COST_KEY_EXCHANGE,
        /// A signature, by the kind of the certificate's key, such as `ECDSA P-256`.
        pub signature: CostTable = &field::COST_SIGNATURE,
        /// The rest of a handshake, such as `TLSv1.3 full` or `TLSv1.2 resumed`.
        pub rest: CostTable = &field::COST_REST,
    }
}

impl HandshakeCosts {
    /// What they take of memory, boxed.
    pub(crate) fn heap_bytes(&self) -> usize {
        let Self { took_us: _, key_exchange, signature, rest } = self;
        size_of::<Self>() + [key_exchange, signature, rest].map(CostTable::heap_bytes).iter().sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_median_of_its_slices_between_the_lowest_and_the_highest() {
        let cost = Cost { low_ns: 10, median_ns: 30, high_ns: 90 };
        assert_eq!(Cost::of_slices(&mut [90, 10, 30]), Some(cost));
        assert_eq!(Cost::of_slices(&mut []), None);
        assert_eq!(
            Cost::from([40, 30, 20]),
            Cost { low_ns: 30, median_ns: 30, high_ns: 30 },
            "of a hostile journal"
        );
    }

    #[test]
    fn a_cost_is_found_by_its_name_in_any_case() {
        let mut table = CostTable::default();
        table.insert("X25519MLKEM768", Cost::from([1, 2, 3]));
        assert_eq!(table.of("x25519mlkem768"), Some(Cost::from([1, 2, 3])));
        assert_eq!(table.of("x25519"), None);
    }
}
