//! Findings about lists of revoked client certificates.

use super::certificates::{days_to, today, when};
use super::rule::{FindingContext, Rule};
use crate::runs::findings::{FindingText, Severity};
use records::setting::Value;

pub(super) const EXPIRES: Rule = Rule { id: "revocation-list-expires", judge: expires, text: expires_text };

const SETTING: &str = "proxy.client-crl";
/// Days before its end from which on a list is found.
const DAYS: i64 = 7;

/// The list that ends first: whole days until then, negative after it, and its day and authority. Of the setting, such as
/// `3 certificates revoked by 1 list until 2026-12-05 (an authority), together sha256:5b1e…`.
fn first<'a>(context: &FindingContext<'a>) -> Option<(i64, &'a str)> {
    let setting = context.run.settings().iter().find(|setting| setting.name == SETTING)?;
    let Value::Text(text) = &setting.value else { return None };
    let (_, end) = text.split_once(" until ")?;
    let (end, _) = end.rsplit_once(", together ")?;
    Some((days_to(end.split(' ').next()?, today(context.run))?, end))
}

fn is_accepted(context: &FindingContext<'_>) -> bool {
    let policy = context.run.settings().iter().find(|setting| setting.name == "proxy.client-crl-expired");
    policy.is_some_and(|setting| setting.value == Value::Text("accept".to_owned()))
}

fn expires(context: &FindingContext<'_>) -> Option<Severity> {
    let (days, _) = first(context)?;
    let severity = if days <= 0 && !is_accepted(context) { Severity::Critical } else { Severity::Warning };
    (days <= DAYS).then_some(severity)
}

fn expires_text(context: &FindingContext<'_>) -> FindingText {
    let (days, end) = first(context).unwrap_or_default();
    let title = match days {
        ..0 => "A revocation list has expired".to_owned(),
        days => format!("A revocation list expires {}", when(days)),
    };
    FindingText::new(title)
        .figure("days left", days)
        .advise("replace the file of --client-crl with the authority's next list; the proxy reads it again by itself")
        .about(SETTING)
        .whom([end.to_owned()])
}
