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

/// The sort key of a row; smaller keys come first, and those of unknown values last in both directions. It holds nearly
/// all that is compared, so that ranking ten thousand rows does not look at them again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    number: u64,
    tie: u64,
    pub(crate) row: u32,
}

impl Rank {
    /// `settled` has the numbers that count instead of those of the row.
    pub(super) fn of<R: Row>(order: Order, row: &R, at: usize, settled: Option<Settled>) -> Self {
        let column = &R::columns()[order.column];
        let (number, tie) = if column.is_left() {
            (key(&column.cell(row)), 0)
        } else {
            let settled = settled.unwrap_or_else(|| Settled::of(order, row));
            let has_second = R::second(order.column).is_some();
            let second = || settled.second.map_or(UNKNOWN, |number| !bits(number));
            (settled.number.map(bits), if has_second { second() } else { row.tie() })
        };
        let number = number.map_or(UNKNOWN, |number| if order.is_descending { !number } else { number });
        Self { number, tie, row: at as u32 }
    }

    /// Rows of equal rank lie by their ids; the rest of long texts and addresses is looked up.
    pub(crate) fn compare<R: Row>(self, other: Self, order: Order, rows: &[R]) -> Ordering {
        (self.number, self.tie).cmp(&(other.number, other.tie)).then_with(|| {
            let row = |rank: Self| &rows[rank.row as usize];
            let rest =
                texts(row(self), row(other), order).then_with(|| row(self).tie().cmp(&row(other).tie()));
            rest.then_with(|| row(self).id().cmp(&row(other).id()))
        })
    }
}

/// The figures by which a row is ordered. They follow those of the row once these have moved by a tenth, so that rows of
/// about the same rank do not change places all the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settled {
    number: Option<f64>,
    second: Option<f64>,
}

/// By which share of itself a figure must move.
const MOVES_MIN: f64 = 0.1;

impl Settled {
    pub(super) fn of<R: Row>(order: Order, row: &R) -> Self {
        let number = |column: usize| R::columns()[column].cell(row).number();
        Self { number: number(order.column), second: R::second(order.column).and_then(number) }
    }

    /// Takes the figures of the row that have moved.
    pub(super) fn follow(&mut self, now: Self) {
        for (settled, now) in [(&mut self.number, now.number), (&mut self.second, now.second)] {
            let stays =
                settled.zip(now).is_some_and(|(a, b)| (a - b).abs() < MOVES_MIN * a.abs().max(b.abs()));
            if !stays {
                *settled = now;
            }
        }
    }
}

/// The sort key of a value that is not known.
const UNKNOWN: u64 = u64::MAX;

/// Returns a number that grows with a figure, and that differs from [`UNKNOWN`] in both directions. No figure below zero
/// has to be told apart, so the bits of a float are in its order.
fn bits(number: f64) -> u64 {
    1 + number.max(0.0).to_bits()
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

/// Returns a number that grows with a value; `None` if it is unknown.
fn key(value: &CellValue<'_>) -> Option<u64> {
    match value {
        CellValue::Text(text) if text.is_empty() => None,
        CellValue::Text(text) => {
            let mut beginning = [0; 8];
            for (to, from) in beginning.iter_mut().zip(text.bytes()) {
                *to = from;
            }
            Some(u64::from_be_bytes(beginning))
        }
        CellValue::Client(id) => Some(address_key(*id)),
        CellValue::Number(_) | CellValue::Quantile(_) | CellValue::Time(..) | CellValue::Expiry(_) => {
            value.number().map(bits)
        }
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
