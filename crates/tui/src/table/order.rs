//! By what the rows of a table are ordered.

use std::cmp::Ordering;
use std::net::IpAddr;

use records::ids::ClientId;

use super::{CellValue, Row};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// The column, by its index.
    pub(crate) column: usize,
    pub(crate) is_descending: bool,
}

impl Order {
    /// Returns the usual order by a column: texts ascend, figures descend.
    pub(crate) fn by<R: Row>(column: usize) -> Self {
        let column = column.min(R::columns().len() - 1);
        Self { column, is_descending: !R::columns()[column].is_left() }
    }
}

/// The sort key of a row; smaller keys come first. It holds nearly all that is compared, so that ranking ten
/// thousand rows does not look at them again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    number: u64,
    tie: u64,
    pub(crate) row: u32,
}

impl Rank {
    pub(crate) fn of<R: Row>(order: Order, row: &R, at: usize) -> Self {
        let number = key(&R::columns()[order.column].cell(row));
        Self { number: if order.is_descending { !number } else { number }, tie: row.tie(), row: at as u32 }
    }

    /// Rows of equal rank lie by their ids; the rest of long texts and addresses is looked up.
    pub(crate) fn compare<R: Row>(self, other: Self, order: Order, rows: &[R]) -> Ordering {
        self.number.cmp(&other.number).then_with(|| {
            let row = |rank: Self| &rows[rank.row as usize];
            let is_text = R::columns()[order.column].is_left();
            let rest = if is_text { texts(row(self), row(other), order) } else { Ordering::Equal };
            let known = rest.then(self.tie.cmp(&other.tie));
            known.then_with(|| row(self).id().cmp(&row(other).id()))
        })
    }
}

/// Compares whole texts and addresses.
fn texts<R: Row>(a: &R, b: &R, order: Order) -> Ordering {
    let column = &R::columns()[order.column];
    let compared = match (column.cell(a), column.cell(b)) {
        (CellValue::Text(a), CellValue::Text(b)) => a.cmp(&b),
        (CellValue::Client(a), CellValue::Client(b)) => a.cmp(&b),
        _ => Ordering::Equal,
    };
    if order.is_descending { compared.reverse() } else { compared }
}

/// Returns a number that grows with a value. What is unknown counts as less than nothing.
fn key(value: &CellValue<'_>) -> u64 {
    match value {
        CellValue::Text(text) => {
            let mut beginning = [0; 8];
            for (to, from) in beginning.iter_mut().zip(text.bytes()) {
                *to = from;
            }
            u64::from_be_bytes(beginning)
        }
        CellValue::Client(id) => address_key(*id),
        // No value below zero has to be told apart, so the bits of a float are in its order.
        CellValue::Number(number) => number.map_or(0, |number| 1 + number.max(0.0).to_bits()),
        CellValue::Quantile(quantile) => quantile.map_or(0, |quantile| quantile.ns),
        CellValue::Time(ns, _) => ns.unwrap_or(0),
    }
}

/// Returns the beginning of an address: the whole of IPv4, most of the first half of IPv6, `other` behind all.
pub(crate) fn address_key(id: ClientId) -> u64 {
    match id {
        ClientId::Addr(IpAddr::V4(v4)) => u64::from(v4.to_bits()),
        ClientId::Addr(IpAddr::V6(v6)) => (1 << 62) | ((v6.to_bits() >> 66) as u64),
        ClientId::Other => u64::MAX,
    }
}
