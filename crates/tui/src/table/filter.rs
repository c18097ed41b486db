//! Filters of a table: `10.0.0.0/8 failed>0 p99>5ms`.
//!
//! All words must match. A word is a comparison with a column, a network, or a part of the name of the row. Blanks around
//! the sign of a comparison do not count.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use model::figures::Operator;

use super::{CellValue, Column, ColumnUnit, Row};

/// A filter as it was typed, with the rows that it lets pass.
#[derive(Clone, Debug)]
pub(crate) struct RowFilter<R: Row> {
    text: String,
    terms: Vec<FilterTerm<R>>,
    error: Option<FilterError>,
}

impl<R: Row> Default for RowFilter<R> {
    fn default() -> Self {
        Self { text: String::new(), terms: Vec::new(), error: None }
    }
}

#[derive(Clone, Debug)]
enum FilterTerm<R: Row> {
    /// The name of the row contains this text.
    Named(String),
    /// The address of the row is in this network.
    Network(IpNet),
    /// The text of the column contains this text, or does not.
    Contains { column: &'static Column<R>, text: String, wanted: bool },
    /// The figure of the column compares so with this number.
    Compares { column: &'static Column<R>, operator: Operator, number: f64 },
}

/// Why a word of a filter cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FilterError {
    #[error("no column {}; there are {columns}", if name.is_empty() { "before the sign" } else { name })]
    Column { name: String, columns: String },
    #[error("{text} is no network, such as 10.0.0.0/8")]
    Network { text: String },
    #[error("{column} is compared with {example}, not with {text:?}")]
    Value { column: &'static str, text: String, example: &'static str },
    #[error("{column} is a text: use = or !=")]
    TextOrder { column: &'static str },
}

impl<R: Row> RowFilter<R> {
    /// Reads a filter. Words that cannot be used let every row pass.
    pub(crate) fn parse(text: &str) -> Self {
        let mut filter = Self { text: text.to_owned(), ..Self::default() };
        for word in words(text) {
            match term(&word) {
                Ok(term) => filter.terms.push(term),
                Err(error) => filter.error = filter.error.or(Some(error)),
            }
        }
        filter
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn error(&self) -> Option<&FilterError> {
        self.error.as_ref()
    }

    /// Returns whether every row passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    pub(crate) fn passes(&self, row: &R) -> bool {
        self.terms.iter().all(|term| term.passes(row))
    }
}

impl<R: Row> FilterTerm<R> {
    fn passes(&self, row: &R) -> bool {
        match self {
            Self::Named(text) => contains(&R::columns()[0].cell(row), text),
            Self::Network(network) => {
                R::columns()[0].cell(row).address().is_some_and(|address| network.contains(&address))
            }
            Self::Contains { column, text, wanted } => contains(&column.cell(row), text) == *wanted,
            Self::Compares { column, operator, number } => {
                column.cell(row).number().is_some_and(|value| operator.holds(value, *number))
            }
        }
    }
}

/// Returns whether a text contains another, whatever the case.
fn contains(value: &CellValue<'_>, text: &str) -> bool {
    match value {
        CellValue::Text(value) => value.to_lowercase().contains(text),
        CellValue::Client(id) => id.to_string().contains(text),
        CellValue::Number(_) | CellValue::Quantile(_) | CellValue::Time(..) | CellValue::Expiry(_) => false,
    }
}

/// Splits a filter into its terms: `p99 > 1ms` is one.
fn words(text: &str) -> Vec<String> {
    let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '!');
    let mut words: Vec<String> = Vec::new();
    for part in text.split_whitespace() {
        match words.last_mut() {
            Some(word) if word.ends_with(is_sign) || part.starts_with(is_sign) => word.push_str(part),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Returns the sign that a text begins with; `=` is enough for equality.
fn operator(text: &str) -> Option<(&'static str, Operator)> {
    Operator::leading(text).or_else(|| text.starts_with('=').then_some(("=", Operator::Equal)))
}

fn term<R: Row>(word: &str) -> Result<FilterTerm<R>, FilterError> {
    let sign_at = |(at, _): (usize, &str)| operator(&word[at..]).map(|(sign, operator)| (at, sign, operator));
    let Some((at, sign, operator)) = word.match_indices(['<', '>', '=', '!']).find_map(sign_at) else {
        return named(word);
    };
    let (name, text) = (&word[..at], &word[at + sign.len()..]);
    let column = named_columns::<R>().find(|column| column.is_called(name));
    let column = column.ok_or_else(|| FilterError::Column {
        name: name.to_owned(),
        columns: named_columns::<R>().map(|column| column.name).collect::<Vec<_>>().join(", "),
    })?;
    match (column.is_left(), operator) {
        (true, Operator::Equal | Operator::Unequal) if column.unit == ColumnUnit::Address => {
            match (named(text)?, operator) {
                (FilterTerm::Named(text), _) => {
                    Ok(FilterTerm::Contains { column, text, wanted: operator == Operator::Equal })
                }
                (term, Operator::Equal) => Ok(term),
                _ => Err(FilterError::Network { text: word.to_owned() }),
            }
        }
        (true, Operator::Equal | Operator::Unequal) => {
            let wanted = operator == Operator::Equal;
            Ok(FilterTerm::Contains { column, text: text.to_lowercase(), wanted })
        }
        (true, _) => Err(FilterError::TextOrder { column: column.name }),
        (false, _) => Ok(FilterTerm::Compares { column, operator, number: column.number(text)? }),
    }
}

/// Returns the columns that a filter can name.
fn named_columns<R: Row>() -> impl Iterator<Item = &'static Column<R>> {
    R::columns().iter().filter(|column| column.unit != ColumnUnit::Graph)
}

/// Reads a part of a name, or a network.
fn named<R: Row>(word: &str) -> Result<FilterTerm<R>, FilterError> {
    if R::columns()[0].unit != ColumnUnit::Address || !word.contains('/') {
        return Ok(FilterTerm::Named(word.to_lowercase()));
    }
    let (address, length) = word.split_once('/').unwrap_or((word, ""));
    let unfinished = length.is_empty() && IpAddr::from_str(address).is_ok();
    // While it is being typed, a network without its length is a whole address.
    let network =
        if unfinished { address.parse::<IpAddr>().ok().map(IpNet::from) } else { word.parse().ok() };
    network.map(FilterTerm::Network).ok_or_else(|| FilterError::Network { text: word.to_owned() })
}

impl<R> Column<R> {
    fn is_called(&self, name: &str) -> bool {
        let heading = self.heading.split(' ').next().unwrap_or_default();
        [self.name, self.alias, heading].iter().any(|own| !own.is_empty() && own.eq_ignore_ascii_case(name))
    }

    /// Reads a number with a unit, in the unit of the column.
    fn number(&self, text: &str) -> Result<f64, FilterError> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, unit) = text.split_at(end);
        let unit = unit.strip_suffix("/s").unwrap_or(unit);
        let factor =
            self.factors().iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|(_, by)| *by);
        let number: Option<f64> = digits.parse().ok();
        number.zip(factor).map(|(number, factor)| number * factor).ok_or_else(|| FilterError::Value {
            column: self.name,
            text: text.to_owned(),
            example: self.example(),
        })
    }

    /// The units that a number may have, with their factors.
    fn factors(&self) -> &'static [(&'static str, f64)] {
        match self.unit {
            ColumnUnit::Ratio => &[("", 0.01), ("%", 0.01)],
            ColumnUnit::Latency => {
                &[("", 1e6), ("ms", 1e6), ("us", 1e3), ("µs", 1e3), ("ns", 1.0), ("s", 1e9)]
            }
            ColumnUnit::Bytes | ColumnUnit::BytesPerSecond => &[
                ("", 1.0),
                ("B", 1.0),
                ("k", 1e3),
                ("kB", 1e3),
                ("M", 1e6),
                ("MB", 1e6),
                ("G", 1e9),
                ("GB", 1e9),
                ("TB", 1e12),
            ],
            ColumnUnit::Text
            | ColumnUnit::Address
            | ColumnUnit::Count
            | ColumnUnit::PerSecond
            | ColumnUnit::Graph => &[("", 1.0), ("k", 1e3), ("M", 1e6)],
        }
    }

    fn example(&self) -> &'static str {
        match self.unit {
            ColumnUnit::Ratio => "a share such as 50%",
            ColumnUnit::Latency => "a time such as 5ms",
            ColumnUnit::Bytes | ColumnUnit::BytesPerSecond => "bytes such as 1MB",
            ColumnUnit::Text
            | ColumnUnit::Address
            | ColumnUnit::Count
            | ColumnUnit::PerSecond
            | ColumnUnit::Graph => "a number such as 100",
        }
    }
}

/// Returns the beginnings of comparisons, such as `p99>`.
pub(crate) fn comparisons<R: Row>() -> impl Iterator<Item = String> {
    named_columns::<R>().map(|column| format!("{}{}", column.name, if column.is_left() { "=" } else { ">" }))
}

#[cfg(test)]
mod tests {
    use records::ids::ClientId;
    use records::metrics::{ClientCounter, Counters};

    use super::*;
    use crate::panes::tables::clients::model::ClientRow;
    use crate::screens::runs::model::RunRow;

    fn error(text: &str) -> String {
        RowFilter::<ClientRow>::parse(text).error().map_or_else(String::new, ToString::to_string)
    }

    #[test]
    fn every_form_of_a_filter_is_read() {
        for text in
            ["10.0", "10.0.0.0/8", "2001:db8::/32", "tls=1.2", "failed>0", "errors>0", "full>50%", "p99>=5ms"]
        {
            assert_eq!(error(text), "", "{text}");
        }
        for text in
            ["out>1MB", "out>1MB/s open<10 10.0.0.0/", "p99!=1.5", "exch/s>100", "  ", "client=10.0.0.0/8"]
        {
            assert_eq!(error(text), "", "{text}");
        }
        assert_eq!(RowFilter::<RunRow>::parse("edge/1 host=edge p99>5ms").error(), None);
    }

    #[test]
    fn a_column_of_a_counter_filters_by_its_total() {
        let mut totals = Counters::default();
        totals[ClientCounter::Retransmits] = 3;
        let row = ClientRow { totals: Some(totals), ..ClientRow::unknown(ClientId::Other) };
        let passes = |text: &str| RowFilter::<ClientRow>::parse(text).passes(&row);
        assert_eq!(
            ["resent>2", "resent=3", "resent>3", "exchanges=0", "exchanges>0"].map(passes),
            [true, true, false, true, false]
        );
    }

    #[test]
    fn blanks_around_the_sign_of_a_comparison_do_not_count() {
        assert_eq!(
            words("10.0 p99 > 1ms full>= 50% tls =1.2 b"),
            ["10.0", "p99>1ms", "full>=50%", "tls=1.2", "b"]
        );
        assert_eq!(words("p99 >"), ["p99>"]);
        assert_eq!(error("p99 > 1ms open < 3"), "");
    }

    #[test]
    fn a_bad_filter_says_why() {
        assert!(
            error("lag>1").starts_with("no column lag; there are client, failed, why, out, in, "),
            "{}",
            error("lag>1")
        );
        assert!(error("=").starts_with("no column before the sign; there are client, "));
        assert_eq!(error("10.0.0.0/99"), "10.0.0.0/99 is no network, such as 10.0.0.0/8");
        assert_eq!(error("p99>5MB"), "p99 is compared with a time such as 5ms, not with \"5MB\"");
        assert_eq!(error("full>"), "full is compared with a share such as 50%, not with \"\"");
        assert_eq!(error("tls>1.2"), "tls is a text: use = or !=");
    }

    #[test]
    fn a_comparison_begins_with_each_column() {
        let comparisons: Vec<String> = comparisons::<ClientRow>().collect();
        for expected in ["open>", "tls=", "failed>", "p99>"] {
            assert!(comparisons.iter().any(|comparison| comparison == expected), "{comparisons:?}");
        }
    }
}
