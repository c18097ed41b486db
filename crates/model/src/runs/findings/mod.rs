//! The findings of a run, and the recent counts that they are judged by. What judges a run is not part of it:
//! [`crate::insight`].

mod sums;

use std::collections::VecDeque;

use serde::Serialize;

use records::text::quantity::grouped;

pub(crate) use self::sums::{HostCounts, RecentSums, RunCounts};

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
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "figures are numbers, or texts made on the spot")]
    pub(crate) fn figure(mut self, figure: impl Into<String>, value: impl ToString) -> Self {
        let value = value.to_string();
        let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
        let value = if is_number { grouped(value) } else { value };
        self.evidence.push(Evidence { figure: figure.into(), value });
        self
    }

    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    pub(crate) fn about(self, setting: &'static str) -> Self {
        Self { setting: Some(setting), ..self }
    }

    pub(crate) fn whom(mut self, all: impl IntoIterator<Item = String>) -> Self {
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
    /// How serious it is, or was at its worst.
    pub severity: Severity,
    /// When it opened, `CLOCK_MONOTONIC` in microseconds.
    pub since_us: u64,
    /// When it closed; `None` while it is open.
    pub closed_us: Option<u64>,
    /// Its present text, or its text when it became so serious if it has closed.
    pub text: FindingText,
}

impl Finding {
    /// True if it was open at a moment of the monotonic clock.
    pub fn is_open_at(&self, us: u64) -> bool {
        self.since_us <= us && self.closed_us.is_none_or(|closed_us| us < closed_us)
    }

    /// Orders findings: the most severe first, of these those that name somebody, and last one that is often the effect of
    /// another.
    pub fn rank(&self) -> impl Ord + use<> {
        (std::cmp::Reverse(self.severity), self.text.whom.is_empty(), self.id == "load-late")
    }

    /// The finding by another clock.
    pub(crate) fn shifted(self, shift_us: i64) -> Self {
        let shifted = |us: u64| us.saturating_add_signed(shift_us);
        Self { since_us: shifted(self.since_us), closed_us: self.closed_us.map(shifted), ..self }
    }
}

/// The findings of a run, and what they are judged by.
#[derive(Debug, Default)]
pub(crate) struct FindingTracker {
    pub(crate) sums: RecentSums,
    /// In the order in which they opened.
    pub(crate) all: VecDeque<Finding>,
    /// True for findings of several runs, or of a run that is read again: they are not evaluated.
    pub(crate) is_frozen: bool,
}

impl FindingTracker {
    pub(crate) fn push(&mut self, finding: Finding) {
        if self.all.len() == EPISODES_MAX {
            let over = self.all.iter().position(|finding| finding.closed_us.is_some());
            self.all.remove(over.unwrap_or(0));
        }
        self.all.push_back(finding);
    }

    /// The tracker for reading the run again from a moment on, without counters of the minutes before.
    pub(crate) fn frozen(&self) -> Self {
        Self { all: self.all.clone(), is_frozen: true, ..Self::default() }
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
