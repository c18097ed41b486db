//! A line of the text, and how figures are written in it.

use std::fmt::Write as _;

use records::metrics::KnownValue;

pub(super) fn line(out: &mut String, name: &str, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{name:<12} {text}");
}

/// Milliseconds, no finer than the times are known.
pub(crate) fn milliseconds(us: KnownValue, is_of_log: bool) -> String {
    match us {
        // A bound is rounded up. Histograms keep three digits.
        KnownValue::AtMost { at_most } => format!("<={}", (at_most / 100.0 - 0.01).ceil() / 10.0),
        KnownValue::Exact(us) if is_of_log => format!("{:.0}", us / 1e3),
        KnownValue::Exact(us) => format!("{:.3}", us / 1e3),
    }
}

/// Decimal bytes with three significant digits or all of them.
pub(crate) fn bytes(count: u64) -> String {
    let scaled = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.2} kB", scaled / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} MB", scaled / 1e6),
        _ => format!("{:.2} GB", scaled / 1e9),
    }
}
