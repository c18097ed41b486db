//! The committed instruction budgets, and the comparison of a count with its budget.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::Result;

/// The factor by which a count may exceed its budget: processors select different code for copying and
/// searching.
pub const TOLERANCE: f64 = 1.03;
/// Below this share of its budget, a count deserves a new, lower budget.
const WORTH_LOWERING: f64 = 0.95;

/// The instruction budgets by the name of the path.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Budgets(BTreeMap<String, u64>);

/// The comparison of a count with its budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BudgetVerdict {
    /// Within the tolerance.
    Kept,
    /// More than the tolerance allows.
    Exceeded,
    /// So low that the budget should be lowered.
    Lower,
    /// No budget is committed for this path.
    Missing,
}

impl Budgets {
    /// Reads a file of lines `INSTRUCTIONS NAME`; `#` begins a comment.
    ///
    /// # Errors
    /// If the file cannot be read, or a line is invalid.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path)
            .map_err(|error| format!("cannot read the budgets in {}: {error}", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        lines
            .map(|line| {
                let (count, name) = line.split_once(' ').ok_or_else(|| format!("no budget: {line:?}"))?;
                Ok((name.trim().to_owned(), count.parse().map_err(|_| format!("no count: {line:?}"))?))
            })
            .collect::<Result<_>>()
            .map(Self)
    }

    /// Sets the budget of a path to this count.
    pub fn set(&mut self, name: &str, count: f64) {
        self.0.insert(name.to_owned(), count.round() as u64);
    }

    /// Writes the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, self.to_text())
    }

    fn to_text(&self) -> String {
        let mut text = String::from(
            "# Instructions of each path; `just bench-instructions` checks them, `just budgets` writes them anew.\n\
             # The cryptographic library's own instructions are not among them.\n",
        );
        for (name, count) in &self.0 {
            let _ = writeln!(text, "{count:>10} {name}");
        }
        text
    }

    /// Returns the budget of a path.
    pub fn of(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// Compares a count with the budget of its path.
    pub fn verdict(&self, name: &str, count: f64) -> BudgetVerdict {
        let Some(budget) = self.of(name) else { return BudgetVerdict::Missing };
        match count / budget as f64 {
            ratio if ratio > TOLERANCE => BudgetVerdict::Exceeded,
            ratio if ratio < WORTH_LOWERING => BudgetVerdict::Lower,
            _ => BudgetVerdict::Kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_compared_with_the_budget_of_its_path() {
        let budgets = Budgets::parse("# comment\n\n  1000 a request\n    20 a frame\n").unwrap();
        assert_eq!(budgets.verdict("a request", 1_030.0), BudgetVerdict::Kept);
        assert_eq!(budgets.verdict("a request", 1_031.0), BudgetVerdict::Exceeded);
        assert_eq!(budgets.verdict("a frame", 18.9), BudgetVerdict::Lower);
        assert_eq!(budgets.verdict("another path", 1.0), BudgetVerdict::Missing);
        assert_eq!(Budgets::parse(&budgets.to_text()).unwrap(), budgets);
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        assert!(Budgets::parse("request 1000").is_err());
        assert!(Budgets::parse("1000").is_err());
    }
}
