//! The alerts of a run that fired.

use std::collections::VecDeque;

use crate::runs::run::aligned::AlignedRun;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{AlertRecord, AlertState, Stamp};

/// Alerts that fired and are kept, the latest.
const EPISODES_MAX: usize = 1_000;

/// An alert from when it fired until it no longer did.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertEpisode {
    /// When it fired, `CLOCK_MONOTONIC` in microseconds.
    pub fired_us: u64,
    /// Its record when it fired, or its last one if that was not read.
    pub fired: AlertRecord,
    /// When it no longer fired, and its record then; `None` while it fires, and if that was not read.
    pub ended: Option<(u64, AlertRecord)>,
}

impl AlertEpisode {
    /// True if it was firing at a moment of the monotonic clock.
    pub fn is_firing_at(&self, us: u64) -> bool {
        self.fired_us <= us && self.ended.as_ref().is_none_or(|(ended_us, _)| us < *ended_us)
    }

    pub fn last(&self) -> &AlertRecord {
        self.ended.as_ref().map_or(&self.fired, |(_, record)| record)
    }
}

/// All of a run that are kept, in the order in which they fired.
#[derive(Debug, Default)]
pub(in crate::runs) struct RunAlerts(VecDeque<AlertEpisode>);

impl RunAlerts {
    pub(in crate::runs) fn apply(&mut self, stamp: &Stamp, record: AlertRecord) {
        let now_us = stamp.mono_us;
        let is_open =
            |episode: &&mut AlertEpisode| episode.ended.is_none() && episode.fired.number == record.number;
        let open = self.0.iter_mut().rev().find(is_open);
        match record.state {
            AlertState::Fired => {
                // The record of its end was lost.
                if let Some(open) = open {
                    open.ended = Some((now_us, open.fired.clone()));
                }
                self.push(AlertEpisode { fired_us: now_us, fired: record, ended: None });
            }
            AlertState::Resolved | AlertState::Withdrawn => {
                if let Some(open) = open {
                    open.ended = Some((now_us, record));
                    return;
                }
                // It fired before the first record read.
                let fired_us = now_us.saturating_sub(record.firing_us);
                self.push(AlertEpisode { fired_us, fired: record.clone(), ended: Some((now_us, record)) });
            }
        }
    }

    fn push(&mut self, episode: AlertEpisode) {
        if self.0.len() == EPISODES_MAX {
            // Alerts that fire are kept, because a screen shows them.
            let oldest_over = self.0.iter().position(|episode| episode.ended.is_some());
            self.0.remove(oldest_over.unwrap_or(0));
        }
        self.0.push_back(episode);
    }

    pub(in crate::runs) fn iter(&self) -> impl DoubleEndedIterator<Item = &AlertEpisode> + ExactSizeIterator {
        self.0.iter()
    }

    /// The alerts that fired up to a moment, in their state then.
    pub(in crate::runs) fn until(&self, us: u64) -> Self {
        let then = |episode: &AlertEpisode| AlertEpisode {
            ended: episode.ended.clone().filter(|(ended_us, _)| *ended_us <= us),
            ..episode.clone()
        };
        Self(self.0.iter().filter(|episode| episode.fired_us <= us).map(then).collect())
    }

    /// Merges the alerts of several runs by time. Each condition begins with the name of its run.
    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let of = |(run, alerts): &(AlignedRun<'_>, &Self)| -> Vec<AlertEpisode> {
            let with_name = |record: &AlertRecord| AlertRecord {
                condition: format!("{}: {}", run.name, record.condition),
                ..record.clone()
            };
            let named = |episode: &AlertEpisode| AlertEpisode {
                fired_us: run.shifted_us(episode.fired_us),
                fired: with_name(&episode.fired),
                ended: episode.ended.as_ref().map(|(us, record)| (run.shifted_us(*us), with_name(record))),
            };
            alerts.iter().map(named).collect()
        };
        let mut all: Vec<AlertEpisode> = members.iter().flat_map(of).collect();
        all.sort_by_key(|episode| episode.fired_us);
        let mut merged = Self::default();
        for episode in all {
            merged.push(episode);
        }
        merged
    }

    pub(in crate::runs) fn bytes(&self) -> usize {
        let texts = |episode: &AlertEpisode| episode.fired.heap_bytes() + episode.last().heap_bytes();
        self.0.iter().map(|episode| size_of::<AlertEpisode>() + texts(episode)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::ids::RunId;

    fn take(alerts: &mut RunAlerts, at_s: u64, number: u64, state: AlertState) {
        let mono_us = at_s * 1_000_000;
        let stamp = Stamp { run: RunId::from_bits(1), seq: 0, mono_us, realtime_us: mono_us, interval_us: 0 };
        let firing_us = if state == AlertState::Fired { 0 } else { 3_000_000 };
        alerts.apply(&stamp, AlertRecord { number, state, firing_us, ..AlertRecord::default() });
    }

    fn spans(alerts: &RunAlerts) -> Vec<(u64, u64, Option<u64>)> {
        let second = |us: u64| us / 1_000_000;
        let span = |episode: &AlertEpisode| {
            let ended = episode.ended.as_ref().map(|(us, _)| second(*us));
            (episode.fired.number, second(episode.fired_us), ended)
        };
        alerts.iter().map(span).collect()
    }

    #[test]
    fn alerts_that_fire_at_the_same_time_are_told_apart() {
        let mut alerts = RunAlerts::default();
        take(&mut alerts, 1, 1, AlertState::Fired);
        take(&mut alerts, 2, 2, AlertState::Fired);
        take(&mut alerts, 5, 1, AlertState::Resolved);
        take(&mut alerts, 7, 1, AlertState::Fired);
        assert_eq!(spans(&alerts), [(1, 1, Some(5)), (2, 2, None), (1, 7, None)]);
        let firing = |s: u64| alerts.iter().filter(|episode| episode.is_firing_at(s * 1_000_000)).count();
        assert_eq!([0, 1, 3, 5, 6, 7, 99].map(firing), [0, 1, 2, 1, 1, 2, 2]);
        assert_eq!(spans(&alerts.until(4_000_000)), [(1, 1, None), (2, 2, None)]);
    }

    #[test]
    fn an_alert_whose_other_record_is_missing_has_its_place() {
        let mut alerts = RunAlerts::default();
        take(&mut alerts, 5, 1, AlertState::Withdrawn);
        take(&mut alerts, 6, 1, AlertState::Fired);
        take(&mut alerts, 9, 1, AlertState::Fired);
        assert_eq!(spans(&alerts), [(1, 2, Some(5)), (1, 6, Some(9)), (1, 9, None)]);
    }

    #[test]
    fn firing_alerts_are_kept_longest() {
        let mut alerts = RunAlerts::default();
        take(&mut alerts, 1, 1, AlertState::Fired);
        for s in 0..EPISODES_MAX as u64 {
            take(&mut alerts, 10 + 2 * s, 2, AlertState::Fired);
            take(&mut alerts, 11 + 2 * s, 2, AlertState::Resolved);
        }
        assert_eq!((alerts.iter().len(), spans(&alerts)[0]), (EPISODES_MAX, (1, 1, None)));
    }
}
