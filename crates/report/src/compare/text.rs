//! A comparison for people, as text and as Markdown.

use std::fmt::Write as _;
use std::ops::Range;

use model::figures::FigureUnit;
use records::kinds::Estimate;
use records::metrics::{KnownValue, TimeResolution};
use records::text::quantity;
use records::text::table::TextTable;

use super::{Comparison, ComparisonRow, ReasonShare, RowOutcome};
use crate::numbers::{bound_ms, fixed, known_ms};
use crate::text::markdown;

pub(super) const HEADS: [&str; 5] = ["figure", "A", "B", "difference", "B against A"];
/// The columns of numbers.
const NUMBERS: Range<usize> = 1..3;

/// The limit of a comparison of single runs.
const NOT_BETTER: &str =
    "One run of each cannot tell a setting from the hour: which setting is better takes alternation (--ab).";

pub(super) fn verdict(rows: &[ComparisonRow]) -> String {
    let of = |found: RowOutcome| rows.iter().filter(move |row| row.outcome == found);
    let differ: Vec<String> = of(RowOutcome::Differs).map(ComparisonRow::described).collect();
    let mut sentences = Vec::new();
    if !differ.is_empty() {
        sentences.push(format!("These runs differ: {}.", differ.join(", ")));
    }
    let same: Vec<&str> = of(RowOutcome::NoDifference).map(|row| &*row.metric).collect();
    if !same.is_empty() {
        sentences.push(format!("No difference is shown in {}.", same.join(", ")));
    }
    for (found, what) in
        [(RowOutcome::Inconclusive, "Nothing can be said of"), (RowOutcome::NotComparable, "Not comparable:")]
    {
        let of_it: Vec<&ComparisonRow> = of(found).collect();
        for alike in of_it.chunk_by(|a, b| a.reason == b.reason) {
            let names: Vec<&str> = alike.iter().map(|row| &*row.metric).collect();
            let reason = alike.first().map_or("", |row| &*row.reason);
            sentences.push(format!("{what} {} ({reason}).", names.join(", ")));
        }
    }
    if !differ.is_empty() {
        sentences.push(NOT_BETTER.to_owned());
    }
    sentences.join(" ")
}

/// A figure with four significant digits, at most four of them decimals, and its thousands grouped.
pub(crate) fn digits(value: f64) -> String {
    let before = value.abs().max(f64::MIN_POSITIVE).log10().floor() as i32;
    let behind = (3 - before).clamp(0, 4) as usize;
    fixed(value, behind)
}

/// A p-value; never shown as 0.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.000_1 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}

pub(super) fn table(out: &mut String, rows: &[ComparisonRow]) {
    let rows: Vec<[String; 5]> = rows.iter().map(ComparisonRow::cells).collect();
    *out += &TextTable::of_rows(HEADS, &NUMBERS, &rows).text();
}

impl ComparisonRow {
    /// Its name, difference and interval.
    fn described(&self) -> String {
        let Some(figures) = &self.estimate else {
            return match &*self.reason {
                "" => self.metric.clone(),
                reason => format!("{} ({reason})", self.metric),
            };
        };
        let [effect, low, high] = self.difference(figures, 2);
        format!("{} by {effect} ({low} to {high} within the runs)", self.metric)
    }

    /// Its difference with the ends of its interval.
    pub(crate) fn difference(&self, figures: &Estimate, decimals: usize) -> [String; 3] {
        let Estimate { effect, low, high, .. } = *figures;
        let unit = if self.unit.is_empty() { "points" } else { "%" };
        quantity::difference([effect, low, high], unit, decimals)
    }

    /// Its name, with its unit if it has one. People read times in milliseconds.
    pub(crate) fn name(&self) -> String {
        let unit = if self.is_time() { "ms" } else { self.unit };
        format!("{} {unit}", self.metric).trim_end().to_owned()
    }

    pub(super) fn is_time(&self) -> bool {
        self.unit == FigureUnit::Micros.symbol()
    }

    /// A value in the unit of its name.
    pub(crate) fn in_unit_of_name(&self, value: f64) -> f64 {
        if self.is_time() { value / 1e3 } else { value }
    }

    /// Both figures in the unit of its name, at each run's resolution; `None` without samples.
    pub(crate) fn values(&self, exact: fn(f64) -> String) -> [Option<String>; 2] {
        let value = |value: Option<KnownValue>, resolution: TimeResolution| {
            let value = value?;
            let number = self.in_unit_of_name(value.number());
            // Only times have a resolution.
            Some(match resolution {
                TimeResolution::FINE => exact(number),
                _ if value.is_bound() => bound_ms(number),
                _ => known_ms(number, resolution),
            })
        };
        [value(self.a, self.resolution[0]), value(self.b, self.resolution[1])]
    }

    /// The cells of a table: name, both figures, the difference with its interval, and the outcome.
    pub(crate) fn cells(&self) -> [String; 5] {
        let mut outcome = self.outcome.to_string().to_uppercase();
        if !self.reason.is_empty() {
            let _ = write!(outcome, ": {}", self.reason);
        }
        let [a, b] = self.values(digits).map(|value| value.unwrap_or_else(|| "-".to_owned()));
        let Some(figures) = &self.estimate else {
            return [self.name(), a, b, "-".to_owned(), outcome];
        };
        let [effect, low, high] = self.difference(figures, 2);
        let Estimate { confidence_percent, p_value: p, .. } = figures;
        let difference =
            format!("{effect} ({low} to {high} at {confidence_percent:.1} %), p {}", probability(*p));
        [self.name(), a, b, difference, outcome]
    }
}

impl Comparison<'_> {
    /// A table for people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in self.forced_lines() {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "{}\n", self.verdict);
        for line in self.heads() {
            let _ = writeln!(out, "{line}");
        }
        out.push('\n');
        table(&mut out, &self.metrics);
        for line in ReasonShare::lines(&self.full_by_reason) {
            let _ = writeln!(out, "{line}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "note: {note}");
        }
        for (name, line) in self.quality() {
            let _ = writeln!(out, "{name}: {line}");
        }
        out
    }

    /// Why the runs are not comparable, if they were compared all the same.
    pub(crate) fn forced_lines(&self) -> impl Iterator<Item = String> {
        self.forced.iter().map(|reason| format!("Not comparable, and compared because of --force: {reason}."))
    }

    /// A line for each run: source, id, account, length and blocks.
    pub(crate) fn sides(&self) -> [String; 2] {
        [("A", &self.a), ("B", &self.b)].map(|(name, side)| {
            let account = match &*side.report.account() {
                "" => String::new(),
                account => format!(" of {account}"),
            };
            format!(
                "{name}: {}, run {}{account}, {:.1} s, blocks of {} s: {}",
                side.source, side.run, side.duration_s, self.block_s, side.blocks
            )
        })
    }

    fn heads(&self) -> Vec<String> {
        let mut all = self.sides().to_vec();
        all.extend(
            self.differs
                .iter()
                .map(|differs| format!("differs: {} {} and {}", differs.0, differs.1, differs.2)),
        );
        if self.differs.is_empty() {
            all.push("no recorded setting differs".to_owned());
        }
        all
    }

    /// How far the figures of each can be trusted.
    fn quality(&self) -> impl Iterator<Item = (&'static str, &String)> {
        [("A", &self.a), ("B", &self.b)]
            .into_iter()
            .flat_map(|(name, side)| side.quality.iter().map(move |line| (name, line)))
    }

    pub fn markdown(&self) -> String {
        let mut out = format!("# {}\n\n", markdown::escaped(&self.title()));
        for line in self.forced_lines() {
            let _ = writeln!(out, "{}\n", markdown::escaped(&line));
        }
        let _ = writeln!(out, "{}\n", markdown::escaped(&self.verdict));
        for line in self.heads() {
            let _ = writeln!(out, "- {}", markdown::escaped(&line));
        }
        markdown::table(&mut out, "Figures", &HEADS, self.metrics.iter().map(|row| row.cells().to_vec()));
        ReasonShare::table(&self.full_by_reason).markdown(&mut out, usize::MAX);
        out.push('\n');
        for note in &self.notes {
            let _ = writeln!(out, "- {}", markdown::escaped(note));
        }
        let _ = writeln!(out, "\n## Quality of the data\n");
        for (name, line) in self.quality() {
            let _ = writeln!(out, "- {name}: {}", markdown::escaped(line));
        }
        let _ = writeln!(out, "\nMade by {}", markdown::escaped(self.command));
        out
    }
}
