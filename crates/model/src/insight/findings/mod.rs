//! Findings: warnings about a run, with figures and advice.
//!
//! A rule evaluates the run after each interval, from the records read. It opens a finding when a figure passes
//! one limit, and closes it when the figure falls below a lower one, so findings do not flap. The text of a finding is
//! made when it opens or its severity rises, and again when an open finding is displayed. When its severity falls, it
//! closes, and one of the lower severity opens.

mod fleet;
mod rules;
#[cfg(test)]
mod tests;

pub use fleet::findings_among_hosts;
pub use rules::certificates::{Expiry, expiry_of, first_expiry};

use serde::Serialize;

use self::rules::RULES;
use self::rules::rule::FindingContext;
use crate::runs::findings::{
    Finding, FindingText, FindingTracker, HostCounts, RecentSums, RunCounts, Severity,
};
use crate::runs::{MetricSeries, Run};
use records::metrics::{Counters, Dimension, Metric, UsageCounter};
use records::text::quantity::elapsed_text;

#[derive(Clone, Debug, Serialize)]
pub struct FindingSummary {
    /// The id of its rule.
    pub id: &'static str,
    /// The name of its run; absent unless several are merged, and of a finding about several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Box<str>>,
    /// How serious it is, or was at its worst.
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

/// Evaluates the records of a run since the last call. A run that is not measured has no findings.
pub(crate) fn judge(run: &mut Run) {
    let mut findings = std::mem::take(&mut run.findings);
    if !findings.is_frozen
        && let Some(now_us) = add_last_interval(&mut findings.sums, run)
    {
        apply_rules(&mut findings, run, now_us);
    }
    run.findings = findings;
}

/// Adds the last interval of each part, and gives its end; `None` if there is none that is new.
fn add_last_interval(sums: &mut RecentSums, run: &Run) -> Option<u64> {
    let [proxy, tls, http, load] = &mut sums.seen_us;
    let before = [*proxy, *load];
    // A refused record is carried by the next one, and a record that journald dropped is missing among those read.
    let lost = run.reading().lost().saturating_add(run.health().dropped_total);
    let host = run.host().map_or_else(HostCounts::default, HostCounts::so_far);
    let not_covered = run.usage().of(Dimension::Name).map(|(_, counters)| counters[UsageCounter::NotCovered]);
    let not_covered = not_covered.fold(0, u64::saturating_add);
    let counted = RunCounts {
        proxy: latest(run.proxy(), proxy),
        tls: latest(run.tls(), tls),
        http: latest(run.http(), http),
        load: latest(run.load(), load),
        host: host.since(&sums.host_before.unwrap_or(host)),
        not_covered: not_covered.saturating_sub(sums.not_covered),
        records_lost: lost.saturating_sub(sums.lost),
        span_us: length_us(run.proxy()).or_else(|| length_us(run.load())).unwrap_or(0),
    };
    if before == [*proxy, *load] {
        return None;
    }
    let now_us = (*proxy).max(*load);
    (sums.lost, sums.not_covered, sums.host_before) = (lost, not_covered, Some(host));
    sums.push(now_us, &counted);
    Some(now_us)
}

/// The length of the last interval of a series.
fn length_us<C: Metric, L: Metric>(series: Option<&MetricSeries<C, L>>) -> Option<u64> {
    Some(series?.intervals().next_back()?.length_us())
}

/// The counts of the last interval of a series, unless they were read before.
fn latest<C: Metric, L: Metric>(series: Option<&MetricSeries<C, L>>, seen_us: &mut u64) -> Counters<C> {
    let last = series.and_then(|series| series.intervals().next_back());
    let new = last.filter(|interval| interval.end_us > *seen_us);
    new.map_or_else(Counters::default, |interval| {
        *seen_us = interval.end_us;
        interval.counters
    })
}

fn apply_rules(findings: &mut FindingTracker, run: &Run, now_us: u64) {
    for rule in &RULES {
        let open = findings.all.iter_mut().rev().find(|it| it.id == rule.id && it.closed_us.is_none());
        let context =
            FindingContext { run, sums: &findings.sums, was: open.as_ref().map(|finding| finding.severity) };
        match ((rule.judge)(&context), open) {
            (None, None) => {}
            (None, Some(open)) => open.closed_us = Some(now_us),
            (Some(severity), Some(open)) if open.severity == severity => {}
            (Some(severity), Some(open)) if open.severity < severity => {
                open.severity = severity;
                open.text = (rule.text)(&context);
            }
            // What is less severe from now on is another finding: the text of the more severe one must not be lost.
            (Some(severity), open) => {
                if let Some(open) = open {
                    open.closed_us = Some(now_us);
                }
                let text = (rule.text)(&context);
                let (id, since_us) = (rule.id, now_us);
                findings.push(Finding { id, run: None, severity, since_us, closed_us: None, text });
            }
        }
    }
}

impl Run {
    /// Findings: open ones first, each by its rank, and closed ones the latest first. The interval being read is not
    /// evaluated yet.
    pub fn findings(&self) -> Vec<Finding> {
        let mut all: Vec<Finding> = self.findings.all.iter().map(|finding| told_now(self, finding)).collect();
        all.sort_by_key(|finding| {
            let closed_us = std::cmp::Reverse(finding.closed_us);
            (finding.closed_us.is_some(), finding.rank(), closed_us, finding.since_us)
        });
        all
    }
}

fn told_now(run: &Run, finding: &Finding) -> Finding {
    let FindingTracker { sums, is_frozen, .. } = &run.findings;
    let rule = RULES.iter().find(|rule| rule.id == finding.id && finding.closed_us.is_none());
    let rule = rule.filter(|_| !is_frozen);
    let context = FindingContext { run, sums, was: Some(finding.severity) };
    let text = rule.map_or_else(|| finding.text.clone(), |rule| (rule.text)(&context));
    Finding { text, ..finding.clone() }
}

/// The findings of several runs, each with the name of its run, and about all of them together, by `CLOCK_REALTIME`.
pub(crate) fn merged(runs: &[(&str, &Run)]) -> FindingTracker {
    let mut merged = FindingTracker { is_frozen: true, ..FindingTracker::default() };
    let together = fleet::findings(runs);
    for &(name, run) in runs {
        let own = run
            .findings()
            .into_iter()
            .map(|finding| Finding { run: Some(name.into()), ..finding.shifted(run.realtime_shift_us()) });
        let is_news = |finding: &Finding| !together.iter().any(|all| all.explains(name, finding));
        own.filter(is_news).for_each(|finding| merged.push(finding));
    }
    for together in together {
        merged.push(together.finding);
    }
    merged
}
