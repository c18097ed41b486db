//! A table of texts, which the page and Markdown render alike.

use std::fmt::Write as _;

use crate::numbers::grouped;
use crate::text::markdown;

/// The heading of a column, which says how its cells are aligned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Heading {
    /// Words.
    Words(&'static str),
    /// Numbers, to the right.
    Number(&'static str),
}

impl Heading {
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Words(heading) | Self::Number(heading) => heading,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ReportTable {
    pub(crate) caption: &'static str,
    pub(crate) columns: Vec<Heading>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl ReportTable {
    pub(crate) fn new(
        caption: &'static str,
        columns: impl Into<Vec<Heading>>,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        Self { caption, columns: columns.into(), rows: rows.into_iter().collect() }
    }

    /// Adds it as Markdown under a heading, at most `rows_max` rows; nothing without rows.
    pub(crate) fn markdown(self, out: &mut String, rows_max: usize) {
        let headings: Vec<&str> = self.columns.iter().map(|column| column.heading()).collect();
        let more = self.rows.len().saturating_sub(rows_max);
        markdown::table(out, self.caption, &headings, self.rows.into_iter().take(rows_max));
        if more > 0 {
            let _ = writeln!(out, "\nand {} more", grouped(more as u64));
        }
    }
}
