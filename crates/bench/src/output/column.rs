//! Numbers of a column: one unit, and as many decimals for each.

use model::figures::FigureUnit;
use records::text::quantity;

use super::wording::UNKNOWN;
use crate::compare::{CaseComparison, CellFigureComparison};

const DECIMALS_MAX: i32 = 3;

/// How the numbers of a column are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ColumnFormat {
    /// The unit in the heading; empty for plain numbers.
    pub unit: &'static str,
    factor: f64,
    decimals: usize,
}

impl ColumnFormat {
    /// A unit in which the largest value is readable, and three digits for the smallest; whole counts stay whole.
    pub fn of(values: impl IntoIterator<Item = f64>, unit: FigureUnit) -> Self {
        let values: Vec<f64> =
            values.into_iter().map(f64::abs).filter(|value| value.is_finite() && *value > 0.0).collect();
        let largest = values.iter().copied().fold(0.0, f64::max);
        let smallest = values.iter().copied().fold(f64::INFINITY, f64::min);
        let is_whole = unit == FigureUnit::Count && values.iter().all(|value| value.fract() == 0.0);
        let (unit, factor) = scale(unit, largest);
        let digits =
            if smallest.is_finite() && !is_whole { (smallest * factor).log10().floor() as i32 } else { 2 };
        Self { unit, factor, decimals: (2 - digits).clamp(0, DECIMALS_MAX) as usize }
    }

    /// The format of a figure's medians; `None` if all are unknown or 0.
    pub fn of_figure(case: &CaseComparison, name: &str) -> Option<Self> {
        let found = || case.targets.iter().filter_map(|target| target.figure(name));
        let unit = found().find(|figure| figure.max > 0.0)?.unit;
        Some(Self::of(found().map(|figure| figure.median), unit))
    }

    /// The median, in brackets if every round of it is in doubt.
    pub fn median(&self, figure: Option<&CellFigureComparison>) -> String {
        match figure {
            None => UNKNOWN.to_owned(),
            Some(figure) if figure.is_doubtful => format!("({})", self.show(figure.median)),
            Some(figure) => self.show(figure.median),
        }
    }

    /// A value without its unit.
    pub fn show(&self, value: f64) -> String {
        quantity::fixed(value * self.factor, self.decimals)
    }

    pub fn heading(&self, title: &str) -> String {
        if self.unit.is_empty() { title.to_owned() } else { format!("{title} {}", self.unit) }
    }
}

/// The unit's name, and the factor for a value.
fn scale(unit: FigureUnit, largest: f64) -> (&'static str, f64) {
    match unit {
        FigureUnit::Micros if largest < 1e3 => ("µs", 1.0),
        FigureUnit::Micros if largest < 1e7 => ("ms", 1e-3),
        FigureUnit::Micros => ("s", 1e-6),
        FigureUnit::Bytes if largest < 1e3 => ("B", 1.0),
        FigureUnit::Bytes if largest < 1e6 => ("kB", 1e-3),
        FigureUnit::Bytes if largest < 1e9 => ("MB", 1e-6),
        FigureUnit::Bytes => ("GB", 1e-9),
        FigureUnit::PerSecond => ("/s", 1.0),
        FigureUnit::Ratio => ("%", 100.0),
        FigureUnit::Percent => ("%", 1.0),
        FigureUnit::Seconds => ("s", 1.0),
        FigureUnit::Count => ("", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_one_unit_and_as_many_decimals_as_its_smallest_value_needs() {
        let shown = |values: &[f64], unit| {
            let format = ColumnFormat::of(values.iter().copied(), unit);
            (format.unit, values.iter().map(|value| format.show(*value)).collect::<Vec<_>>())
        };
        let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown(&[251.25, 98.0], FigureUnit::Micros), ("µs", strings(&["251.2", "98.0"])));
        assert_eq!(shown(&[1_500.0, 98_000.0], FigureUnit::Micros), ("ms", strings(&["1.50", "98.00"])));
        assert_eq!(shown(&[1_234_567.0], FigureUnit::PerSecond), ("/s", strings(&["1,234,567"])));
        assert_eq!(shown(&[3.0, 12.0], FigureUnit::Count), ("", strings(&["3", "12"])));
        assert_eq!(shown(&[-1234.0], FigureUnit::Count), ("", strings(&["-1,234"])));
        assert_eq!(shown(&[0.0], FigureUnit::Count), ("", strings(&["0"])));
    }
}
