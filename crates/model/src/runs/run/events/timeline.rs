//! The changes, marks and alerts of a run, by time.

use std::collections::VecDeque;

use crate::runs::run::aligned::AlignedRun;
use records::kinds::AlertState;
use records::kinds::heap_size::HeapSize as _;
use records::setting::Setting;

/// Marks and changes that are kept, the latest.
const MARKERS_MAX: usize = 1_000;

/// Something that a person did, or an alert.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// `CLOCK_MONOTONIC`, in microseconds.
    pub mono_us: u64,
    /// `CLOCK_REALTIME`, in microseconds.
    pub realtime_us: u64,
    pub event: TimelineEvent,
}

/// An action of a person, or a transition of an alert.
#[derive(Clone, Debug, PartialEq)]
pub enum TimelineEvent {
    Mark {
        /// Its number within the run, from 1.
        number: u64,
        /// The note; may be empty.
        text: String,
    },
    Change {
        before: String,
        /// The setting after, with its name.
        after: Box<Setting>,
        /// Who changed it over the control socket; empty for the dashboard, an experiment and the program itself.
        by: String,
    },
    /// An alert fired, or no longer did.
    Alert {
        /// Its number within the run, from 1.
        number: u64,
        state: AlertState,
        /// The name of its figure, as it was written.
        name: String,
    },
}

impl std::fmt::Display for TimelineEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mark { number, text } if text.is_empty() => write!(f, "mark {number}"),
            Self::Mark { number, text } => write!(f, "mark {number} {text}"),
            Self::Change { before, after, .. } => write!(f, "{} {before} > {}", after.name, after.value),
            Self::Alert { number: _, state, name } => write!(f, "alert {name} {state}"),
        }
    }
}

/// All of a run that are kept.
#[derive(Debug, Default)]
pub(in crate::runs) struct Markers(VecDeque<Marker>);

impl Markers {
    pub(in crate::runs) fn push(&mut self, marker: Marker) {
        if self.0.len() == MARKERS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(marker);
    }

    /// Their size in memory, in bytes.
    pub(in crate::runs) fn bytes(&self) -> usize {
        let texts = |marker: &Marker| match &marker.event {
            TimelineEvent::Mark { text, .. } => text.heap_bytes(),
            TimelineEvent::Change { before, after, by } => {
                before.heap_bytes() + after.heap_bytes() + by.heap_bytes()
            }
            TimelineEvent::Alert { name, .. } => name.heap_bytes(),
        };
        self.0.iter().map(|marker| size_of::<Marker>() + texts(marker)).sum()
    }

    pub(in crate::runs) fn iter(&self) -> impl DoubleEndedIterator<Item = &Marker> + ExactSizeIterator {
        self.0.iter()
    }

    /// The markers up to a moment.
    pub(in crate::runs) fn until(&self, us: u64) -> Self {
        Self(self.0.iter().take_while(|marker| marker.mono_us <= us).cloned().collect())
    }

    /// Merges the markers of several runs by time. Each mark begins with the name of its run.
    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let of = |(run, markers): &(AlignedRun<'_>, &Self)| -> Vec<Marker> {
            let named = |marker: &Marker| Marker {
                mono_us: run.shifted_us(marker.mono_us),
                realtime_us: marker.realtime_us,
                event: match &marker.event {
                    TimelineEvent::Mark { number, text } => {
                        TimelineEvent::Mark { number: *number, text: format!("{} {text}", run.name) }
                    }
                    other @ (TimelineEvent::Change { .. } | TimelineEvent::Alert { .. }) => other.clone(),
                },
            };
            markers.iter().map(named).collect()
        };
        let mut all: Vec<Marker> = members.iter().flat_map(of).collect();
        all.sort_by_key(|marker| marker.mono_us);
        let mut markers = Self::default();
        for marker in all {
            markers.push(marker);
        }
        markers
    }

    /// The value of a setting at a moment, given its present value.
    pub(in crate::runs) fn value_at(&self, us: u64, setting: &Setting) -> String {
        let changes = self.0.iter().rev().take_while(|marker| marker.mono_us > us);
        let befores = changes.filter_map(|marker| match &marker.event {
            TimelineEvent::Change { before, after, .. } if after.name == setting.name => Some(before),
            TimelineEvent::Change { .. } | TimelineEvent::Mark { .. } | TimelineEvent::Alert { .. } => None,
        });
        befores.last().map_or_else(|| setting.value.to_string(), String::clone)
    }
}
