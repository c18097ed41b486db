//! The section of findings.

use maud::{Markup, html};
use telemetry::insight::FindingSummary;

use crate::report::Report;

impl Report<'_> {
    /// The section; nothing without findings.
    pub(super) fn finding_section(&self) -> Markup {
        let all = self.findings();
        html! {
            @if !all.is_empty() {
                section { h2 { "Findings" } ul.findings { @for finding in all { (item(finding)) } } }
            }
        }
    }
}

fn item(finding: &FindingSummary) -> Markup {
    let told = &finding.told;
    let more = match told.whom_more {
        0 => String::new(),
        n => format!("and {n} more"),
    };
    html! {
        li {
            p {
                strong.(finding.severity) { (finding.severity) } " " (finding.sentence()) " "
                span.dim { "(" code { (finding.id) } ", " (finding.when()) ")" }
            }
            dl { @for one in &told.evidence { div { dt { (one.figure) } dd { (one.value) } } } }
            @for advice in &told.advice { p.advice { "→ " (advice) } }
            @if !told.whom.is_empty() {
                details {
                    summary { "Who and what" }
                    ul { @for one in &told.whom { li { (one) } } @if !more.is_empty() { li { (more) } } }
                }
            }
        }
    }
}
