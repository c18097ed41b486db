//! The history of changes of settings.

use std::fmt;

use model::runs::{Marker, Run, TimelineEvent};

use crate::state::control::ConfirmedChange;
use crate::view_model::mark_comparison::experiment_of;

/// The wall clock's difference that the record of a change may have from the time it was asked for, in microseconds.
const TOLERANCE_US: u64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AppliedChange {
    pub(crate) realtime_us: u64,
    pub(crate) name: String,
    /// The values before and after, with their unit.
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) by: ChangedBy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangedBy {
    /// This dashboard.
    Here,
    /// This dashboard, undoing another change.
    Undo,
    /// The experiment of this number.
    Experiment(u64),
    /// Somebody over the control socket, such as `alice (uid 1000, pid 4711)`.
    Person(String),
    /// The program, another dashboard, or this one before it was started again.
    Other,
}

impl fmt::Display for ChangedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => f.write_str("here"),
            Self::Undo => f.write_str("undo"),
            Self::Experiment(number) => write!(f, "A/B {number}"),
            Self::Person(name) => f.write_str(name),
            Self::Other => f.write_str("not here"),
        }
    }
}

/// Changes of settings, the latest first. `made` are those of this dashboard.
pub(crate) fn setting_changes(run: &Run, made: &[ConfirmedChange]) -> Vec<AppliedChange> {
    run.markers().rev().filter_map(|marker| setting_change(run, marker, made)).collect()
}

fn setting_change(run: &Run, marker: &Marker, made: &[ConfirmedChange]) -> Option<AppliedChange> {
    let TimelineEvent::Change { before, after, by } = &marker.event else { return None };
    let is_it = |made: &&ConfirmedChange| {
        let (from_us, until_us) = made.realtime_us;
        let range = from_us.saturating_sub(TOLERANCE_US)..=until_us.saturating_add(TOLERANCE_US);
        made.name == after.name && made.value == after.value && range.contains(&marker.realtime_us)
    };
    let by = match (made.iter().find(is_it), experiment_of(run, marker)) {
        (Some(made), _) if made.is_undo => ChangedBy::Undo,
        (Some(_), _) => ChangedBy::Here,
        (None, Some(number)) => ChangedBy::Experiment(number),
        (None, None) if by.is_empty() => ChangedBy::Other,
        (None, None) => ChangedBy::Person(by.clone()),
    };
    let was = before.parse().map(|number| records::text::quantity::shown(number, &after.unit));
    Some(AppliedChange {
        realtime_us: marker.realtime_us,
        name: after.name.clone(),
        before: was.unwrap_or_else(|_| before.clone()),
        after: after.shown(&after.value),
        by,
    })
}
