//! The findings of a run.

use model::insight::FindingSummary;

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

fn row(finding: &FindingSummary) -> Vec<String> {
    let figures: Vec<String> =
        finding.text.evidence.iter().map(|one| format!("{}: {}", one.figure, one.value)).collect();
    vec![
        finding.severity.to_string(),
        finding.sentence(),
        finding.when(),
        figures.join("; "),
        finding.text.advice.join("; "),
    ]
}
