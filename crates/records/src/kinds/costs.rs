//! The cost of the parts of a handshake on this machine, measured by a calibration.

use crate::metrics::Field;
use crate::wire::{DecodeError, FieldSource, WireField, json};
use journal::EntryBuf;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::wire::{field, wire};

/// Most costs of one table; further ones of a hostile journal are dropped.
const COSTS_MAX: usize = 64;

/// CPU time of one operation, in nanoseconds: the quartiles of the medians of several slices of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 3]", into = "[u64; 3]")]
pub struct Cost {
    /// The lower quartile.
    pub low_ns: u64,
    /// The median.
    pub median_ns: u64,
    /// The upper quartile.
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
        let at = |quarter: usize| slices.get(slices.len().saturating_sub(1) * quarter / 4).copied();
        Some(Self { low_ns: at(1)?, median_ns: at(2)?, high_ns: at(3)? })
    }
}

/// Costs by name.
///
/// As text a JSON object: `{"x25519":[31000,32000,35000]}` with the quartiles in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CostTable(BTreeMap<String, Cost>);

impl CostTable {
    /// The cost of this name. Case does not matter: `X25519MLKEM768` and `x25519mlkem768` are one group.
    pub fn of(&self, name: &str) -> Option<Cost> {
        self.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, cost)| cost)
    }

    pub fn insert(&mut self, name: &str, cost: Cost) {
        self.0.insert(name.to_owned(), cost);
    }

    /// Each cost with its name, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Cost)> {
        self.0.iter().map(|(name, cost)| (name.as_str(), *cost))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Makes the names printable, and drops more costs than a calibration has.
    pub(crate) fn cleaned(self) -> Self {
        let costs = self.0.into_iter().take(COSTS_MAX);
        Self(costs.map(|(name, cost)| (crate::text::clean::text(&name), cost)).collect())
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.keys().map(|name| size_of::<(String, Cost)>() + name.capacity()).sum()
    }
}

/// The hybrid group, by its IANA name.
pub const HYBRID: &str = "X25519MLKEM768";
/// The rest of a full handshake in [`HandshakeCosts::rest`], after the version's name.
pub const FULL: &str = "full";
/// The rest of a resumed handshake in [`HandshakeCosts::rest`], after the version's name.
pub const RESUMED: &str = "resumed";

wire! {
    /// The cost of the parts of a handshake on this machine.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct HandshakeCosts {
        /// CPU time that measuring took, in microseconds.
        pub took_us: u64 = &field::CALIBRATION_CPU,
        /// The proxy's part of a key exchange, by the group's IANA name.
        pub key_exchange: CostTable = &field::COST_KEY_EXCHANGE,
        /// A signature, by the certificate's key type, such as `ECDSA P-256`.
        pub signature: CostTable = &field::COST_SIGNATURE,
        /// The rest of a handshake, such as `TLSv1.3 full` or `TLSv1.2 resumed`: with X25519, or with the group that follows,
        /// as in `TLSv1.3 full X25519MLKEM768`.
        pub rest: CostTable = &field::COST_REST,
    }
}

impl HandshakeCosts {
    /// Heap memory of the boxed value.
    pub fn heap_bytes(&self) -> usize {
        let Self { took_us: _, key_exchange, signature, rest } = self;
        size_of::<Self>() + [key_exchange, signature, rest].map(CostTable::heap_bytes).iter().sum::<usize>()
    }
}

impl WireField for CostTable {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if !self.is_empty() {
            out.push_display(&field.name, serde_json::json!(self));
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        from.text(&field.name)
            .map_or_else(|| Ok(Self::default()), |text| json(field, text).map(Self::cleaned))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_median_of_its_slices_between_their_quartiles() {
        let cost = Cost { low_ns: 20, median_ns: 30, high_ns: 40 };
        assert_eq!(Cost::of_slices(&mut [900, 10, 30, 40, 20]), Some(cost), "disturbed slices do not count");
        let one = Cost { low_ns: 7, median_ns: 7, high_ns: 7 };
        assert_eq!(Cost::of_slices(&mut [7]), Some(one));
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
