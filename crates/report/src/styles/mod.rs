//! The results of a load, in the formats of well-known tools. They come from a run's model, so also from an old
//! journal.
//!
//! Each format has a module with a function from a `RunView` to text. The figures are tlsdash's in every format: where
//! a tool defines a name differently, `docs/load.md` explains it. The notes, such as that no certificate was
//! verified, end every format.

mod ab;
mod h2load;
mod jmeter;
mod run_view;
mod units;
mod vegeta;
mod wrk;

use std::fmt::Write as _;
use std::str::FromStr;

use model::runs::Run;

use run_view::RunView;

/// The shape of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportStyle {
    /// As `vegeta report` prints it.
    Vegeta,
    /// As `h2load` does.
    H2load,
    /// As `ApacheBench` does.
    Ab,
    /// As `wrk --latency` does.
    Wrk,
    /// The columns of `JMeter`'s summary report.
    Jmeter,
}

impl ReportStyle {
    pub const ALL: [(&str, Self); 5] = [
        ("vegeta", Self::Vegeta),
        ("h2load", Self::H2load),
        ("ab", Self::Ab),
        ("wrk", Self::Wrk),
        ("jmeter", Self::Jmeter),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected vegeta, h2load, ab, wrk or jmeter")]
pub struct ReportStyleError;

impl FromStr for ReportStyle {
    type Err = ReportStyleError;

    fn from_str(text: &str) -> Result<Self, ReportStyleError> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, style)| style).ok_or(ReportStyleError)
    }
}

/// A run's load in a shape; `None` if the run had none.
pub fn report(run: &Run, style: ReportStyle) -> Option<String> {
    let view = RunView::of(run)?;
    let mut text = match style {
        ReportStyle::Vegeta => vegeta::text(&view),
        ReportStyle::H2load => h2load::text(&view),
        ReportStyle::Ab => ab::text(&view),
        ReportStyle::Wrk => wrk::text(&view),
        ReportStyle::Jmeter => jmeter::text(&view),
    };
    if let Some(observed) = &run.summary().observed {
        let _ = writeln!(
            text,
            "# process {}: CPU {:.2} s, {:.1} %; at most {} threads, {:.1} MB",
            observed.pid,
            observed.cpu_s,
            observed.cpu_percent,
            observed.threads_max,
            observed.memory_max_bytes as f64 / 1e6
        );
    }
    for note in &view.load.notes {
        let _ = writeln!(text, "# {note}");
    }
    Some(text)
}

#[cfg(test)]
mod tests;
