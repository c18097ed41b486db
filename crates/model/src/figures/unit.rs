//! The units of figures.

use records::metrics::KnownValue;
use records::text::quantity;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    Count,
    Bytes,
    PerSecond,
    /// A ratio, from 0 to 1.
    Ratio,
    /// Percent of one core.
    Percent,
    Seconds,
    Micros,
}

impl FigureUnit {
    /// The unit's symbol; empty for counts and ratios.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Count | Self::Ratio => "",
            Self::Bytes => "B",
            Self::PerSecond => "1/s",
            Self::Percent => "%",
            Self::Seconds => "s",
            Self::Micros => "µs",
        }
    }

    /// A value in this unit, for people: three digits with the unit's symbol.
    pub fn show(self, value: f64) -> String {
        let digits = significant_digits;
        match self {
            Self::Count => digits(value),
            Self::Bytes => match value.abs() {
                0.0..1e3 => format!("{} B", digits(value)),
                1e3..1e6 => format!("{} kB", digits(value / 1e3)),
                1e6..1e9 => format!("{} MB", digits(value / 1e6)),
                _ => format!("{} GB", digits(value / 1e9)),
            },
            Self::PerSecond => format!("{}/s", digits(value)),
            Self::Ratio => format!("{} %", digits(value * 100.0)),
            Self::Percent => format!("{} %", digits(value)),
            Self::Seconds => format!("{} s", digits(value)),
            Self::Micros => format!("{} ms", digits(value / 1e3)),
        }
    }

    /// Shows a value of which only a bound may be known.
    pub fn show_known(self, value: KnownValue) -> String {
        match value {
            KnownValue::Exact(value) => self.show(value),
            KnownValue::AtMost { at_most } => format!("at most {}", self.show(at_most)),
        }
    }
}

/// A number with three significant digits, or all of its whole ones, without zeros at their end.
pub(crate) fn significant_digits(value: f64) -> String {
    let places = if value == 0.0 { 0.0 } else { (2.0 - value.abs().log10().floor()).clamp(0.0, 9.0) };
    quantity::trimmed(&format!("{value:.0$}", places as usize)).to_owned()
}
