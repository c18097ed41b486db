//! The section of findings.

use maud::{Markup, html};
use model::insight::FindingSummary;

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
    let text = &finding.text;
    let more = match text.whom_more {
        0 => String::new(),
        n => format!("and {n} more"),
    };
    html! {
        li {
            p {
                strong.(finding.severity) { (finding.severity) } " " (finding.sentence()) " "
                span.dim { "(" code { (finding.id) } ", " (finding.when()) ")" }
            }
            dl { @for one in &text.evidence { div { dt { (one.figure) } dd { (one.value) } } } }
            @for advice in &text.advice { p.advice { "→ " (advice) } }
            @if !text.whom.is_empty() {
                details {
                    summary { "Who and what" }
                    ul { @for one in &text.whom { li { (one) } } @if !more.is_empty() { li { (more) } } }
                }
            }
        }
    }
}
