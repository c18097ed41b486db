//! The values of cells, and their texts.

use std::borrow::Cow;
use std::net::IpAddr;

use model::insight::Expiry;
use records::ids::ClientId;
use records::metrics::TimeResolution;
use serde_json::json;

use crate::theme::{Glyphs, format};
use crate::view_model::classes::Quantile;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnUnit {
    /// A text, aligned left.
    Text,
    /// An address, aligned left.
    Address,
    Count,
    PerSecond,
    Bytes,
    BytesPerSecond,
    /// A ratio from 0 to 1, shown in percent.
    Ratio,
    /// Nanoseconds, shown in milliseconds.
    Latency,
    /// A graph; the pane draws it.
    Graph,
}

/// The value of a cell; `None` is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellValue<'r> {
    Text(Cow<'r, str>),
    Client(ClientId),
    Number(Option<f64>),
    Quantile(Option<Quantile>),
    /// Nanoseconds, and how finely they are known.
    Time(Option<u64>, TimeResolution),
    /// The days that a certificate has left.
    Expiry(Expiry),
}

impl<'r> CellValue<'r> {
    pub(crate) fn text(text: &'r str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// A count; `None` is unknown.
    pub(crate) fn count(n: Option<u64>) -> Self {
        Self::Number(n.map(|n| n as f64))
    }

    /// Returns whether it shows nothing.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self, Self::Number(None) | Self::Quantile(None)) || *self == CellValue::text("")
    }

    /// Returns the number behind a cell, in the unit of its column.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => *number,
            Self::Quantile(quantile) => quantile.map(|quantile| quantile.ns as f64),
            Self::Time(ns, _) => ns.map(|ns| ns as f64),
            Self::Expiry(expiry) => Some(expiry.days as f64),
            Self::Text(_) | Self::Client(_) => None,
        }
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Client(ClientId::Addr(address)) => Some(*address),
            Self::Client(ClientId::Other)
            | Self::Text(_)
            | Self::Number(_)
            | Self::Quantile(_)
            | Self::Time(..)
            | Self::Expiry(_) => None,
        }
    }

    /// Returns the text of a cell; of a percentile without its brackets.
    pub(crate) fn shown(&self, unit: ColumnUnit, glyphs: Glyphs) -> String {
        let number = match self {
            Self::Text(text) => return text.clone().into_owned(),
            Self::Client(id) => return id.to_string(),
            Self::Number(number) => *number,
            Self::Quantile(Some(Quantile { ns, resolution, .. })) | Self::Time(Some(ns), resolution) => {
                return format::latency(*ns, *resolution, glyphs);
            }
            Self::Quantile(None) | Self::Time(None, _) => None,
            Self::Expiry(Expiry { days: ..0, .. }) => return "expired".to_owned(),
            Self::Expiry(Expiry { days, .. }) => Some(*days as f64),
        };
        let Some(number) = number else { return glyphs.none().to_string() };
        match unit {
            ColumnUnit::Text | ColumnUnit::Address | ColumnUnit::Count | ColumnUnit::Graph => {
                format::count(number as u64)
            }
            ColumnUnit::PerSecond => format::per_second(number),
            ColumnUnit::Bytes => format::bytes(number),
            ColumnUnit::BytesPerSecond => format::bytes_per_second(number),
            ColumnUnit::Ratio => format::percent(number),
            ColumnUnit::Latency => format::millis(number as u64),
        }
    }

    pub(super) fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Client(id) => json!(id.to_string()),
            Self::Number(number) => json!(number),
            Self::Quantile(quantile) => json!(quantile.map(|quantile| quantile.ns as f64 / 1e3)),
            Self::Time(ns, _) => json!(ns.map(|ns| ns as f64)),
            Self::Expiry(expiry) => json!(expiry.days),
        }
    }
}
