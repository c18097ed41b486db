//! Everything about one value of usage, such as a server name.
//!
//! ```text
//! +- server name shop.example, since the start -----------------------------------+
//! | handshakes  5,000 (83.3% of all)  full 1,000  resumed 80.0%  failed 3         |
//! | why full    no ticket 620 (62.0%)  expired 280 (28.0%)  other 100 (10.0%)     |
//! | CPU         1.20 s in handshakes (85.1% of all)  full 0.41 ms  resumed 0.12 ms|
//! | bytes       in 12.0 MB  out 6.13 GB, of connections that are over             |
//! | only choice 12: without it these handshakes would fail                        |
//! +-------------------------------------------------------------------------------+
//! ```

use records::metrics::{UsageCounter, labels};

use super::model::{UsageRow, name_of};
use crate::state::State;
use crate::theme::Theme;
use crate::theme::format;
use crate::widgets::detail::{Details, NamedLine};
use crate::widgets::parts::share;

pub(super) fn details(state: &State) -> Option<Details> {
    let list = &state.usage;
    let row = list.rows.row(list.rows.table.opened?);
    let (value, at) = (row.map_or("", |row| &*row.value), state.at_past_moment());
    Some(Details {
        cells: 96,
        title: format!("{} {value}, since the start{at}", name_of(list.dimension)),
        lines: row.map_or_else(Vec::new, |row| texts(state.theme, row)),
        gone: "no handshakes of it by this moment",
    })
}

fn texts(theme: Theme, row: &UsageRow) -> Vec<NamedLine> {
    let count = |counter| format::count(row.counters[counter]);
    let bytes = |counter| format::bytes(row.counters[counter] as f64);
    let failed = row.failed().map_or_else(String::new, |n| format!("  failed {}", format::count(n)));
    let handshakes = format!(
        "{} ({} of all)  full {}  resumed {}{failed}",
        format::count(row.counters.handshakes()),
        share(theme, row.share()),
        count(UsageCounter::HandshakesFull),
        share(theme, row.resumed_share()),
    );
    let mean = |ns, n| {
        let (ns, n) = (row.counters[ns], row.counters[n]);
        ns.checked_div(n).map_or_else(|| theme.glyphs.none().to_string(), format::millis)
    };
    let cpu = format!(
        "{} of all handshake CPU  full {} ms  resumed {} ms",
        share(theme, row.compute_share()),
        mean(UsageCounter::ComputeFullNs, UsageCounter::HandshakesFull),
        mean(UsageCounter::ComputeResumedNs, UsageCounter::HandshakesResumed),
    );
    let only = row.counters[UsageCounter::OnlyChoice];
    let end = if only > 0 { ": without it these handshakes would fail" } else { "" };
    vec![
        ("handshakes", handshakes),
        ("why full", reasons(theme, row)),
        ("CPU", cpu),
        (
            "bytes",
            format!(
                "in {}  out {}, of connections that are over",
                bytes(UsageCounter::BytesIn),
                bytes(UsageCounter::BytesOut)
            ),
        ),
        ("only choice", format!("{}{end}", format::count(only))),
    ]
}

/// Returns the full handshakes by reason; reasons that are not counted separately are `other`.
fn reasons(theme: Theme, row: &UsageRow) -> String {
    let full = row.counters[UsageCounter::HandshakesFull];
    let known = labels::usage_full_reasons().map(|(name, counter)| (name, row.counters[counter]));
    let mut all: Vec<(&str, u64)> = known.collect();
    let told = all.iter().fold(0, |sum: u64, (_, n)| sum.saturating_add(*n));
    all.push(("other", full.saturating_sub(told)));
    all.retain(|(_, n)| *n > 0);
    all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let words = |(name, n): (&str, u64)| {
        format!("{name} {} ({})", format::count(n), format::percent(n as f64 / full.max(1) as f64))
    };
    let all: Vec<String> = all.into_iter().map(words).collect();
    if all.is_empty() { theme.glyphs.none().to_string() } else { all.join("  ") }
}
