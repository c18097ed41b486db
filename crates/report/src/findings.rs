//! The findings of a run.

use telemetry::insight::FindingSummary;

use crate::numbers::fixed;
use crate::report::Report;
use crate::table::Heading::Words;
use crate::table::ReportTable;

impl Report<'_> {
    pub(crate) fn findings(&self) -> &[FindingSummary] {
        &self.summary.findings
    }

    pub(crate) fn finding_rows(&self) -> ReportTable {
        let columns = ["severity", "finding", "when", "figures", "what to do"].map(Words);
        ReportTable::new("Findings", columns, self.findings().iter().map(row))
    }
}

/// When it was open.
pub(crate) fn when(finding: &FindingSummary) -> String {
    let since = fixed(finding.since_s, 1);
    match finding.closed_s {
        None => format!("since {since} s"),
        Some(closed) => format!("{since} s to {} s, closed", fixed(closed, 1)),
    }
}

fn row(finding: &FindingSummary) -> Vec<String> {
    let figures: Vec<String> =
        finding.told.evidence.iter().map(|one| format!("{}: {}", one.figure, one.value)).collect();
    vec![
        finding.severity.to_string(),
        finding.sentence(),
        when(finding),
        figures.join("; "),
        finding.told.advice.join("; "),
    ]
}
