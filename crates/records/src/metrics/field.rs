//! The description of a journal field.

use std::borrow::Cow;
use std::fmt;

/// One row of the field table (`docs/journal-schema.md` is made of it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name in the journal, `TLSDASH_…` unless it is one of systemd's own.
    pub name: Cow<'static, str>,
    pub unit: Unit,
    /// A value as a journal has it.
    pub example: &'static str,
    /// The meaning, in one sentence.
    pub meaning: Cow<'static, str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A whole number of things.
    Count,
    /// A number in a unit given elsewhere, or without one.
    Number,
    Bytes,
    Micros,
    Nanos,
    /// Events a second.
    PerSecond,
    /// Hundredths.
    Percent,
    /// `0` or `1`.
    Flag,
    Id,
    /// Text, cleaned of control characters.
    Text,
    Json,
    /// An `HdrHistogram` of nanoseconds: V2, deflate, base64.
    Histogram,
    /// A [`Sketch`](crate::histogram::Sketch).
    Sketch,
    /// [`StatusCounts`](crate::values::StatusCounts).
    StatusCounts,
    /// [`AgeCounts`](crate::values::AgeCounts).
    AgeCounts,
    /// [`ArrivalCounts`](crate::values::ArrivalCounts).
    ArrivalCounts,
    /// [`ValueCounts`](crate::values::ValueCounts).
    ValueCounts,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Count => "count",
            Self::Number => "number",
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
            Self::Sketch => "sketch",
            Self::StatusCounts => "status counts",
            Self::AgeCounts => "age counts",
            Self::ArrivalCounts => "arrival counts",
            Self::ValueCounts => "value counts",
        })
    }
}
