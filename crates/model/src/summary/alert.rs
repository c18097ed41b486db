//! An alert that fired, as the summary has it.

use serde::Serialize;

use crate::figures::AlertFigure as _;
use crate::runs::{AlertEpisode, Run};
use records::kinds::AlertState;
use records::metrics::KnownValue;

#[derive(Clone, Debug, Serialize)]
pub struct AlertSummary {
    /// Its number within the run.
    pub number: u64,
    /// The alert as it was written.
    pub condition: String,
    /// The figure's full name.
    pub figure: String,
    /// The limit, in the figure's unit.
    pub limit: f64,
    /// The figure when the alert fired.
    pub value: KnownValue,
    /// The worst value; while it fires, that when it fired.
    pub worst: KnownValue,
    /// When it fired, in seconds after the run began.
    pub fired_s: f64,
    /// When it stopped firing; `null` if it fired until the end of the records read.
    pub ended_s: Option<f64>,
    /// How long it was firing, in seconds.
    pub duration_s: f64,
    /// `fired` if it fired until the end, else `resolved`, or `withdrawn` if it was changed or switched off.
    pub state: String,
    /// The sentence for people: the worst value with its unit.
    #[serde(skip)]
    pub worst_text: String,
}

impl AlertSummary {
    pub(super) fn of(run: &Run, episode: &AlertEpisode) -> Self {
        let AlertEpisode { fired_us, fired, ended } = episode;
        let last = episode.last();
        let began_us = run.last_us().saturating_sub(run.duration_us());
        let seconds = |us: u64| us.saturating_sub(began_us) as f64 / 1e6;
        let end_us = ended.as_ref().map_or_else(|| run.last_us(), |(us, _)| *us);
        Self {
            number: fired.number,
            condition: fired.condition.clone(),
            figure: fired.figure.clone(),
            limit: fired.limit,
            value: fired.known(fired.value),
            worst: last.known(last.worst),
            fired_s: seconds(*fired_us),
            ended_s: ended.as_ref().map(|(us, _)| seconds(*us)),
            duration_s: end_us.saturating_sub(*fired_us) as f64 / 1e6,
            state: last.state.to_string(),
            worst_text: match last.state {
                // Its record was made when it fired.
                AlertState::Fired => format!("{} when it fired", last.shown(last.worst)),
                AlertState::Resolved | AlertState::Withdrawn => last.shown(last.worst),
            },
        }
    }
}
