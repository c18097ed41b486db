//! Findings: warnings about a run, with figures and advice.
//!
//! A [`Rule`] evaluates the run after each interval, from the records read. It opens a finding when a figure passes
//! one limit, and closes it when the figure falls below a lower one, so findings do not flap. The text of a finding is
//! made when it opens or its severity changes, and again when an open finding is displayed.

mod rules;
mod sums;
#[cfg(test)]
mod tests;

pub use rules::certificates::{Expiry, expiry_of, first_expiry};

use std::collections::VecDeque;

use serde::Serialize;

use self::rules::RULES;
use self::rules::rule::FindingContext;
use self::sums::RecentSums;
use crate::runs::Run;
use records::text::quantity::{elapsed_text, grouped};

/// Findings that are kept of a run. Beyond this, the finding that closed first is removed.
const EPISODES_MAX: usize = 200;
/// Clients or names that a finding lists.
const WHOM_MAX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know before a change.
    Info,
    /// It will break, or costs much.
    Warning,
    /// It is broken, or will be within days.
    Critical,
}

impl Severity {
    /// Each severity with its word.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Info, "info"), (Self::Warning, "warning"), (Self::Critical, "critical")];
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(Self::ALL[*self as usize].1)
    }
}

/// A figure that a finding rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    pub figure: String,
    /// Its value with its unit.
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FindingText {
    /// One sentence, without names or addresses of anybody.
    pub title: String,
    pub evidence: Vec<Evidence>,
    /// The advice, and the text to type.
    pub advice: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<&'static str>,
    /// Clients, names and messages concerned, the most important first, at most ten.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub whom: Vec<String>,
    /// The number of further names.
    pub whom_more: u64,
}

impl FindingText {
    fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "figures are numbers, or texts made on the spot")]
    fn figure(mut self, figure: impl Into<String>, value: impl ToString) -> Self {
        let value = value.to_string();
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_number { grouped(value) } else { value };
        self.evidence.push(Evidence { figure: figure.into(), value });
        self
    }

    fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    fn about(self, setting: &'static str) -> Self {
        Self { setting: Some(setting), ..self }
    }

    fn whom(mut self, all: impl IntoIterator<Item = String>) -> Self {
        let mut all = all.into_iter();
        self.whom = all.by_ref().take(WHOM_MAX).collect();
        self.whom_more = all.count() as u64;
        self
    }
}

/// Something that is about to break, from when it opened until it closed.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Its rule, such as `certificate-expires`; docs/findings.md has them all.
    pub id: &'static str,
    /// The name of its run, if several are merged.
    pub run: Option<Box<str>>,
    /// How serious it is, or was last.
    pub severity: Severity,
    /// When it opened, `CLOCK_MONOTONIC` in microseconds.
    pub since_us: u64,
    /// When it closed; `None` while it is open.
    pub closed_us: Option<u64>,
    /// Its present text, or its text at the opening if it has closed.
    pub text: FindingText,
}

#[derive(Clone, Debug, Serialize)]
pub struct FindingSummary {
    /// The id of its rule.
    pub id: &'static str,
    /// The name of its run; absent unless several are merged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<str>>,
    /// How serious it is, or was last.
    pub severity: Severity,
    /// When it opened, in seconds after the run began.
    pub since_s: f64,
    /// When it closed; `null` if it was open at the end of the records read.
    pub closed_s: Option<f64>,
    #[serde(flatten)]
    pub text: FindingText,
}

impl FindingSummary {
    pub(crate) fn of(run: &Run, finding: Finding) -> Self {
        let began_us = run.last_us().saturating_sub(run.duration_us());
        let seconds = |us: u64| us.saturating_sub(began_us) as f64 / 1e6;
        let Finding { id, run, severity, since_us, closed_us, text } = finding;
        Self { id, run, severity, since_s: seconds(since_us), closed_s: closed_us.map(seconds), text }
    }

    /// The sentence, with the name of its run if several are merged.
    pub fn sentence(&self) -> String {
        match &self.run {
            Some(run) => format!("{run}: {}", self.text.title),
            None => self.text.title.clone(),
        }
    }

    /// When it was open, as moments that [`crate::history::Moment`] reads: `since +00:11`, or `+00:11 to +01:20, closed`.
    pub fn when(&self) -> String {
        let at = |seconds: f64| format!("+{}", elapsed_text(seconds as u64));
        match self.closed_s {
            None => format!("since {}", at(self.since_s)),
            Some(closed_s) => format!("{} to {}, closed", at(self.since_s), at(closed_s)),
        }
    }
}

impl Finding {
    /// True if it was open at a moment of the monotonic clock.
    pub fn is_open_at(&self, us: u64) -> bool {
        self.since_us <= us && self.closed_us.is_none_or(|closed_us| us < closed_us)
    }
}

/// The findings of a run. Part of the run, fed after each interval.
#[derive(Debug, Default)]
pub(crate) struct FindingTracker {
    sums: RecentSums,
    /// In the order in which they opened.
    all: VecDeque<Finding>,
    /// True for findings of several runs, or of a run that is read again: they are not evaluated.
    is_frozen: bool,
}

impl FindingTracker {
    /// Evaluates the records since the last call. A run that is not measured has no findings.
    pub(crate) fn judge(&mut self, run: &Run) {
        let now_us = if self.is_frozen { None } else { self.sums.add_last_intervals(run) };
        let Some(now_us) = now_us else { return };
        for rule in &RULES {
            let open = self.all.iter_mut().rev().find(|it| it.id == rule.id && it.closed_us.is_none());
            let context =
                FindingContext { run, sums: &self.sums, was: open.as_ref().map(|finding| finding.severity) };
            match ((rule.judge)(&context), open) {
                (None, None) => {}
                (None, Some(open)) => open.closed_us = Some(now_us),
                (Some(severity), Some(open)) if open.severity == severity => {}
                (Some(severity), Some(open)) => {
                    open.severity = severity;
                    open.text = (rule.text)(&context);
                }
                (Some(severity), None) => {
                    let text = (rule.text)(&context);
                    let (id, since_us) = (rule.id, now_us);
                    self.push(Finding { id, run: None, severity, since_us, closed_us: None, text });
                }
            }
        }
    }

    fn push(&mut self, finding: Finding) {
        if self.all.len() == EPISODES_MAX {
            let over = self.all.iter().position(|finding| finding.closed_us.is_some());
            self.all.remove(over.unwrap_or(0));
        }
        self.all.push_back(finding);
    }

    /// All findings: open ones first, by severity, then closed ones, the latest first.
    pub(crate) fn list(&self, run: &Run) -> Vec<Finding> {
        let mut all: Vec<Finding> = self.all.iter().map(|finding| self.told_now(run, finding)).collect();
        all.sort_by_key(|finding| {
            use std::cmp::Reverse;
            (
                finding.closed_us.is_some(),
                Reverse(finding.severity),
                Reverse(finding.closed_us),
                finding.since_us,
            )
        });
        all
    }

    fn told_now(&self, run: &Run, finding: &Finding) -> Finding {
        let rule = RULES.iter().find(|rule| rule.id == finding.id && finding.closed_us.is_none());
        let rule = rule.filter(|_| !self.is_frozen);
        let context = FindingContext { run, sums: &self.sums, was: Some(finding.severity) };
        let text = rule.map_or_else(|| finding.text.clone(), |rule| (rule.text)(&context));
        Finding { text, ..finding.clone() }
    }

    /// The tracker for reading the run again from a moment on, without counters of the minutes before.
    pub(crate) fn frozen(&self) -> Self {
        Self { all: self.all.clone(), is_frozen: true, ..Self::default() }
    }

    /// The findings of several runs, each with the name of its run, and with an offset to the common clock.
    pub(crate) fn merged<'a>(runs: impl Iterator<Item = (&'a str, &'a Run, i64)>) -> Self {
        let mut merged = Self { is_frozen: true, ..Self::default() };
        for (name, run, shift_us) in runs {
            for finding in run.findings() {
                let shifted = |us: u64| us.saturating_add_signed(shift_us);
                merged.push(Finding {
                    since_us: shifted(finding.since_us),
                    closed_us: finding.closed_us.map(shifted),
                    run: Some(name.into()),
                    ..finding
                });
            }
        }
        merged
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let bytes_of = |finding: &Finding| {
            let FindingText { title, evidence, advice, setting: _, whom, whom_more: _ } = &finding.text;
            let evidence =
                evidence.iter().map(|one| size_of::<Evidence>() + one.figure.len() + one.value.len());
            let texts = advice.iter().chain(whom).map(|text| size_of::<String>() + text.len());
            size_of::<Finding>() + title.len() + evidence.sum::<usize>() + texts.sum::<usize>()
        };
        self.sums.heap_bytes() + self.all.iter().map(bytes_of).sum::<usize>()
    }
}
