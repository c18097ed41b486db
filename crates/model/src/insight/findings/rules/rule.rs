//! A rule, and its context: a run after an interval.

use crate::insight::shares::share;
use crate::runs::Run;
use crate::runs::findings::{FindingText, RecentSums, RunCounts, Severity};
use records::setting::Value;

/// The time of what a finding calls recent, in microseconds.
pub(super) const MINUTE_US: u64 = 60_000_000;

pub(crate) struct Rule {
    pub(crate) id: &'static str,
    /// Returns the severity; `None` if there is no finding.
    pub(crate) judge: fn(&FindingContext<'_>) -> Option<Severity>,
    pub(crate) text: fn(&FindingContext<'_>) -> FindingText,
}

/// A figure at which a finding opens, and a lower one below which it closes.
#[derive(Clone, Copy, Debug)]
pub(super) struct HysteresisLimit {
    pub(super) open: f64,
    pub(super) close: f64,
}

impl HysteresisLimit {
    /// Opens at a figure, and closes below half of it.
    pub(super) const fn at(open: f64) -> Self {
        Self { open, close: open / 2.0 }
    }
}

/// A run after an interval.
#[derive(Clone, Copy)]
pub(crate) struct FindingContext<'a> {
    pub(crate) run: &'a Run,
    pub(crate) sums: &'a RecentSums,
    /// The severity of the rule's finding if it is open.
    pub(crate) was: Option<Severity>,
}

impl<'a> FindingContext<'a> {
    pub(super) fn minute(&self) -> &'a RunCounts {
        self.sums.minute()
    }

    pub(super) fn ten_minutes(&self) -> &'a RunCounts {
        self.sums.ten_minutes()
    }

    /// True if a figure is beyond the limit: that for opening, or for closing if the finding is as severe already.
    pub(super) fn passes(&self, severity: Severity, value: f64, limit: HysteresisLimit) -> bool {
        let is_so_already = self.was.is_some_and(|was| was >= severity);
        if is_so_already { value >= limit.close && value > 0.0 } else { value >= limit.open }
    }

    /// The severity of a share of many: `n` of them must pass its limit too.
    pub(super) fn graded(
        &self,
        (n, whole): (u64, u64),
        n_min: f64,
        limits: &[(Severity, HysteresisLimit)],
    ) -> Option<Severity> {
        let share = share(n, whole);
        let passed = |(severity, limit): &&(Severity, HysteresisLimit)| {
            self.passes(*severity, n as f64, HysteresisLimit::at(n_min))
                && self.passes(*severity, share, *limit)
        };
        limits.iter().filter(passed).map(|(severity, _)| *severity).max()
    }

    /// A setting's value in words.
    pub(super) fn word(&self, setting: &str) -> Option<String> {
        Some(self.run.setting(setting)?.value.to_string())
    }

    pub(super) fn is(&self, setting: &str, word: &str) -> bool {
        matches!(self.run.setting(setting).map(|setting| &setting.value), Some(Value::Text(text)) if text == word)
    }
}
