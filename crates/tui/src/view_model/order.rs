//! By what the clients are ranked.

use std::cmp::Ordering;
use std::net::IpAddr;

use telemetry::ClientId;

use super::ClientRow;

/// What the clients are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SortKey {
    /// Bytes a second to the client.
    #[default]
    Out,
    /// Bytes a second from the client.
    In,
    /// Exchanges a second.
    Exchanges,
    /// The 99th percentile of its exchanges' latencies.
    P99,
    /// Open connections.
    Open,
    /// Connections.
    Connections,
    /// Share of full handshakes.
    Full,
    /// Errors.
    Errors,
    /// Bytes since the beginning.
    Total,
    /// The address.
    Client,
}

impl SortKey {
    /// All of them, in the order in which a key goes through them.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Out,
        Self::In,
        Self::Exchanges,
        Self::P99,
        Self::Open,
        Self::Connections,
        Self::Full,
        Self::Errors,
        Self::Total,
        Self::Client,
    ];

    /// The next one.
    pub(crate) fn next(self) -> Self {
        let at = Self::ALL.iter().position(|&key| key == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    /// The heading of its column.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Out => "out",
            Self::In => "in",
            Self::Exchanges => "exch/s",
            Self::P99 => "p99 ms",
            Self::Open => "open",
            Self::Connections => "conns",
            Self::Full => "full",
            Self::Errors => "errors",
            Self::Total => "total",
            Self::Client => "client",
        }
    }

    /// True if a person wants the largest first.
    fn is_descending(self) -> bool {
        self != Self::Client
    }

    /// A number that grows with the row's value. What is unknown counts as less than nothing.
    fn number(self, row: &ClientRow) -> u64 {
        match self {
            Self::Out => of_float(row.out_per_second),
            Self::In => of_float(row.in_per_second),
            Self::Exchanges => of_float(row.exchanges_per_second),
            Self::P99 => row.latency.map_or(0, |latency| latency.p99.ns),
            Self::Open => row.open,
            Self::Connections => row.connections.map_or(0, |n| n + 1),
            Self::Full => of_float(row.full_share),
            Self::Errors => row.errors.map_or(0, |n| n + 1),
            Self::Total => row.bytes(),
            Self::Client => 0,
        }
    }
}

/// No value below nothing ever has to be told apart, so the bits of a float are in its order.
fn of_float(value: Option<f64>) -> u64 {
    value.map_or(0, |value| 1 + value.max(0.0).to_bits())
}

/// The order of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) key: SortKey,
    /// True if the order is the other way round than a person usually wants it.
    pub(crate) reversed: bool,
}

impl Order {
    /// True if the largest comes first.
    pub(crate) fn is_descending(self) -> bool {
        self.key.is_descending() != self.reversed
    }
}

/// A row's place among the others: smaller comes first. It holds all that is compared, so that ranking ten thousand
/// rows does not have to look at them again and again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rank {
    number: u64,
    /// The beginning of the address, in its order.
    address: u64,
    pub(super) row: u32,
}

impl Rank {
    pub(super) fn of(order: Order, row: &ClientRow, at: usize) -> Self {
        let (number, address) = (order.key.number(row), beginning(row.id));
        let turned = |number: u64, is_turned: bool| if is_turned { !number } else { number };
        let by_address = order.key == SortKey::Client && order.is_descending();
        Self {
            number: turned(number, order.is_descending()),
            address: turned(address, by_address),
            row: at as u32,
        }
    }

    /// Ranks of equal rows lie by address; the rest of long addresses is looked up.
    pub(super) fn compare(self, other: Self, order: Order, rows: &[ClientRow]) -> Ordering {
        let known = self.number.cmp(&other.number).then(self.address.cmp(&other.address));
        known.then_with(|| {
            let ids = rows[self.row as usize].id.cmp(&rows[other.row as usize].id);
            if order.key == SortKey::Client && order.is_descending() { ids.reverse() } else { ids }
        })
    }
}

/// The beginning of an address: the whole of IPv4, most of the first half of IPv6, `other` behind all.
fn beginning(id: ClientId) -> u64 {
    match id {
        ClientId::Addr(IpAddr::V4(v4)) => u64::from(v4.to_bits()),
        ClientId::Addr(IpAddr::V6(v6)) => (1 << 62) | ((v6.to_bits() >> 66) as u64),
        ClientId::Other => u64::MAX,
    }
}
