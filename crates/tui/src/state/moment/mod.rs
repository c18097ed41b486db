//! The shown moment of the run: the present or a past one.

pub(crate) mod playback;
pub(crate) mod replay;
pub(crate) mod seek;
mod shown;
pub(crate) mod snapshot;
pub(crate) mod timeline;
mod worst;
pub(crate) mod zoom;

use std::collections::HashMap;

use model::runs::{Model, Run, Usage};
use records::ids::ClientId;

use crate::clock::ClockReading;
use crate::panes::tables::clients::history::History;
use crate::panes::tables::clients::rows::ClientRows;
use crate::view_model::past::PastSetting;
use playback::Playback;
use snapshot::Snapshot;

#[derive(Debug, Default)]
pub(crate) enum View {
    #[default]
    Live,
    Frozen(Box<PastView>),
    /// A past moment from which the run is played.
    Replay(Box<PastView>, Playback),
}

impl View {
    pub(crate) fn past(&self) -> Option<&PastView> {
        match self {
            Self::Live => None,
            Self::Frozen(past) | Self::Replay(past, _) => Some(past),
        }
    }

    pub(crate) fn past_mut(&mut self) -> Option<&mut PastView> {
        match self {
            Self::Live => None,
            Self::Frozen(past) | Self::Replay(past, _) => Some(past),
        }
    }

    pub(crate) fn playback(&self) -> Option<&Playback> {
        match self {
            Self::Live | Self::Frozen(_) => None,
            Self::Replay(_, playback) => Some(playback),
        }
    }

    pub(crate) fn playback_mut(&mut self) -> Option<&mut Playback> {
        match self {
            Self::Live | Self::Frozen(_) => None,
            Self::Replay(_, playback) => Some(playback),
        }
    }

    /// Plays from the past moment; the present cannot be played.
    pub(crate) fn play(&mut self, playback: Playback) {
        *self = match std::mem::take(self) {
            Self::Live => Self::Live,
            Self::Frozen(past) | Self::Replay(past, _) => Self::Replay(past, playback),
        };
    }
}

/// A past moment, on the run's monotonic clock. Reading continues meanwhile.
#[derive(Debug)]
pub(crate) struct PastView {
    /// When the view was frozen.
    pub(crate) since: ClockReading,
    /// The latest moment that can be shown: that of freezing, or the run's last record during a replay.
    pub(crate) end_us: u64,
    /// Right edge of the timeline.
    pub(crate) edge_us: u64,
    /// The sought moment; `None` for that of freezing.
    pub(crate) cursor_us: Option<u64>,
    /// The settings at the cursor.
    pub(crate) settings: Vec<PastSetting>,
    pub(crate) snapshot: Snapshot,
    /// The table of usage when the view was frozen.
    pub(crate) usage: Usage,
    /// The clients and their histories when the view was frozen; the model no longer keeps them.
    clients: ClientRows,
    histories: HashMap<ClientId, History>,
    /// Time of a slot of these histories.
    slot_us: u64,
}

impl PastView {
    /// The moment of the last record.
    pub(crate) fn freeze(live: &Snapshot, run: &Run, now: ClockReading) -> Self {
        let slot_us = live.interval_us().max(1);
        let history = |id| crate::panes::tables::clients::history::history(run, id, slot_us);
        let end_us = run.last_us();
        Self {
            since: now,
            end_us,
            edge_us: end_us,
            cursor_us: None,
            settings: Vec::new(),
            snapshot: live.copy(),
            usage: run.usage().clone(),
            clients: live.table.clone(),
            histories: live.table.rows.all().iter().map(|row| (row.id, history(row.id))).collect(),
            slot_us,
        }
    }

    pub(crate) fn us(&self) -> u64 {
        self.cursor_us.unwrap_or(self.end_us)
    }

    /// Moves to another moment, and shows it from the model in memory.
    pub(crate) fn go_to(&mut self, (model, run): (&Model, &Run), us: u64, span_us: u64) {
        let us = us.clamp(run.began_us().min(self.end_us), self.end_us);
        self.snapshot.take_earlier((model, run), us, span_us, &self.clients);
        self.set_cursor(run, us);
    }

    /// Moves to another moment; the caller takes its snapshot.
    pub(crate) fn set_cursor(&mut self, run: &Run, us: u64) {
        self.cursor_us = Some(us);
        self.settings = crate::view_model::past::settings_at(run, us);
    }

    /// Returns what a client did up to the moment that is shown.
    pub(crate) fn history(&self, id: ClientId) -> History {
        let mut history = self.histories.get(&id).cloned().unwrap_or_default();
        let later = (self.end_us.saturating_sub(self.us()) + self.slot_us / 2) / self.slot_us;
        history.truncate(history.len().saturating_sub(usize::try_from(later).unwrap_or(usize::MAX)));
        history
    }
}
