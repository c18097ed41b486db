//! The baseline that latencies are compared with: the window before a mark or a change.

use model::alerts::Alerts;
use model::runs::{Experiment, Marker, Run, TimelineEvent};

use super::span::{Span, SpanWindows};
use super::{ViewModel, classes};

/// How long after its last record an experiment may take to put its setting back, in microseconds.
const PUT_BACK_US_MAX: u64 = 2_000_000;

/// The window that ends at the latest mark; without any mark, at the latest change of a setting that a person made.
#[derive(Debug, Default)]
pub(crate) struct MarkComparison {
    windows: SpanWindows,
}

impl MarkComparison {
    /// Compares the latencies of the window up to `until_us` with the baseline. There is nothing to compare while that window
    /// reaches back beyond the mark, or spans the whole run.
    pub(crate) fn compare(&mut self, run: &Run, until_us: u64, figures: &mut ViewModel) {
        let earlier = || run.markers().rev().filter(|marker| marker.mono_us <= until_us);
        let is_mark = |marker: &&Marker| matches!(marker.event, TimelineEvent::Mark { .. });
        let mark = earlier().find(is_mark).or_else(|| earlier().find(|marker| is_of_person(run, marker)));
        let (Some(mark), Span::Last(span_us)) = (mark, figures.span) else { return };
        figures.against = Some(match &mark.event {
            TimelineEvent::Mark { number, .. } => format!("mark {number}"),
            TimelineEvent::Change { .. } | TimelineEvent::Alert { .. } => "change".to_owned(),
        });
        if until_us.saturating_sub(span_us) < mark.mono_us {
            return;
        }
        self.windows.slide_to(run, figures.span, mark.mono_us);
        let before = classes::all(run, &self.windows, figures.span);
        classes::compare(&mut figures.latencies, &before);
    }
}

/// True for a change that a person made to proxy or load. Alerts change nothing that is measured, and what was before an
/// experiment's change is a block of the experiment.
fn is_of_person(run: &Run, marker: &Marker) -> bool {
    let TimelineEvent::Change { after, .. } = &marker.event else { return false };
    experiment_of(run, marker).is_none() && !Alerts::is_setting(&after.name)
}

/// Marks, alerts and changes of settings, oldest first, without the switches of experiments.
pub(crate) fn events_of(run: &Run) -> impl DoubleEndedIterator<Item = &Marker> {
    run.markers().filter(|marker| experiment_of(run, marker).is_none())
}

/// The number of the experiment that made a change.
pub(crate) fn experiment_of(run: &Run, marker: &Marker) -> Option<u64> {
    let TimelineEvent::Change { after, .. } = &marker.event else { return None };
    let is_it = |experiment: &&Experiment| {
        let until_us = experiment.last_us.saturating_add(PUT_BACK_US_MAX);
        experiment.state.setting == after.name && (experiment.began_us..=until_us).contains(&marker.mono_us)
    };
    run.experiments().find(is_it).map(|experiment| experiment.state.number)
}
