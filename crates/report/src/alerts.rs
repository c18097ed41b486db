//! The table of alerts that fired.

use maud::{Markup, html};
use telemetry::model::AlertSummary;

use crate::report::Report;
use crate::text::markdown;

const HEADS: [&str; 5] = ["alert", "fired, s", "ended, s", "for, s", "worst"];

impl Report<'_> {
    /// For a page; nothing without alerts.
    pub(crate) fn alert_table(&self) -> Markup {
        let alerts = &self.summary.alerts;
        html! {
            @if !alerts.is_empty() {
                table {
                    thead { tr { th { (HEADS[0]) } @for head in &HEADS[1..] { th.n { (head) } } } }
                    tbody {
                        @for [condition, figures @ ..] in alerts.iter().map(row) {
                            tr { td { (condition) } @for figure in figures { td.n { (figure) } } }
                        }
                    }
                }
            }
        }
    }

    /// For Markdown.
    pub(crate) fn alerts(&self, out: &mut String) {
        markdown::table(out, "Alerts", &HEADS, self.summary.alerts.iter().map(|alert| row(alert).to_vec()));
    }
}

/// The alert, when it fired and ended after the run began, for how long, and the worst value.
fn row(alert: &AlertSummary) -> [String; HEADS.len()] {
    let ended = match alert.ended_s {
        None => "still firing at the end".to_owned(),
        Some(s) if alert.state == "withdrawn" => format!("{s:.1}, changed or switched off"),
        Some(s) => format!("{s:.1}"),
    };
    let AlertSummary { condition, fired_s, duration_s, worst_text, .. } = alert;
    [condition.clone(), format!("{fired_s:.1}"), ended, format!("{duration_s:.1}"), worst_text.clone()]
}
