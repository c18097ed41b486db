//! Tells a person who looks elsewhere that an alert fires.

use model::history::Update;
use records::ids::RunId;
use records::kinds::{AlertRecord, AlertState, Body};

use super::action::Effect;
use crate::options::AlertNotify;
use crate::state::State;

/// Returns the notification of an update that was just recorded. What the journal held at the start, and what is
/// replayed, notifies nobody.
pub(crate) fn notification(state: &State, update: &Update) -> Option<Effect> {
    let Update::Batch(batch) = update else { return None };
    if !state.caught_up || state.options.alert_notify == AlertNotify::Off {
        return None;
    }
    let shown = state.options.run.or(state.shown);
    // A service that is shown has the alerts of them all.
    let is_shown = |run: RunId| shown.is_some_and(|shown| run == shown || run == shown.whole());
    let fired = |record: &AlertRecord| record.state == AlertState::Fired;
    let mut alerts = batch.records.iter().filter_map(|record| match &record.body {
        Body::Alert(alert) if fired(alert) && is_shown(record.stamp.run) => Some(alert.sentence.0.clone()),
        _ => None,
    });
    let first = alerts.next()?;
    let more = match alerts.count() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(Effect::Notify(format!("{first}{more}")))
}
