//! The table of alerts that fired.

use model::summary::AlertSummary;

use crate::report::Report;
use crate::table::Heading::{Number, Words};
use crate::table::ReportTable;

impl Report<'_> {
    pub(crate) fn alert_rows(&self) -> ReportTable {
        let columns =
            [Words("alert"), Number("fired, s"), Words("ended, s"), Number("for, s"), Words("worst")];
        ReportTable::new("Alerts", columns, self.summary.alerts.iter().map(row))
    }
}

/// The alert, when it fired and ended after the run began, for how long, and the worst value.
fn row(alert: &AlertSummary) -> Vec<String> {
    let ended = match alert.ended_s {
        None => "still firing at the end".to_owned(),
        Some(s) if alert.state == "withdrawn" => format!("{s:.1}, changed or switched off"),
        Some(s) => format!("{s:.1}"),
    };
    let AlertSummary { condition, fired_s, duration_s, worst_text, .. } = alert;
    vec![condition.clone(), format!("{fired_s:.1}"), ended, format!("{duration_s:.1}"), worst_text.clone()]
}
