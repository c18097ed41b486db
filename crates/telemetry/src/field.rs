//! What a journal field of ours is called, in which unit, and what it means.

use std::fmt;

/// One row of the field table (`docs/journal-schema.md` is made of it).
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in the journal, `TLSDASH_…` unless it is one of systemd's own.
    pub name: &'static str,
    /// In what it is written.
    pub unit: Unit,
    /// A value as it stands in a journal.
    pub example: &'static str,
    /// What it says, in one sentence.
    pub meaning: &'static str,
}

/// In what a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A whole number of things.
    Count,
    /// Bytes.
    Bytes,
    /// Microseconds.
    Micros,
    /// Nanoseconds.
    Nanos,
    /// Events a second.
    PerSecond,
    /// Hundredths.
    Percent,
    /// `0` or `1`.
    Flag,
    /// An identifier.
    Id,
    /// Text, cleaned of control characters.
    Text,
    /// JSON.
    Json,
    /// An `HdrHistogram` of nanoseconds: V2, deflate, base64.
    Histogram,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Micros => "µs",
            Self::Nanos => "ns",
            Self::PerSecond => "1/s",
            Self::Percent => "%",
            Self::Flag => "0 or 1",
            Self::Id => "id",
            Self::Text => "text",
            Self::Json => "JSON",
            Self::Histogram => "histogram, ns",
        })
    }
}
