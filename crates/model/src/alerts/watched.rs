//! The state of one alert: whether its condition holds, since when, and the worst value.

use super::window::{AlertInterval, AlertWindow, IntervalGauges};
use super::{Alert, AlertError};
use crate::figures::{AlertFigure as _, Figure, FigureSubjects, Operator};
use records::kinds::{AlertRecord, AlertState};
use records::metrics::KnownValue;

/// An alert, its figure's last window, and its state.
#[derive(Debug)]
pub(super) struct WatchedAlert {
    alert: Alert,
    figure: Figure,
    limit: f64,
    window: AlertWindow,
    state: ConditionState,
    /// The last known value.
    value: f64,
    /// True once the missing value was explained.
    has_told_why: bool,
}

/// The change that an interval brought.
#[derive(Debug)]
pub(super) enum Transition {
    Record(AlertRecord),
    /// The condition cannot be evaluated, for the first time.
    Unknown(Obstacle),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Obstacle {
    /// The number of samples, and the number needed.
    TooFew(u64, u64),
    /// The figure is at the resolution of the log, which does not tell whether it meets the limit.
    Bound(KnownValue),
}

#[derive(Clone, Copy, Debug)]
enum ConditionState {
    Idle,
    /// The condition holds, not yet for as long as it must.
    Pending(ConditionPeriod),
    Firing(ConditionPeriod),
}

/// Since when a condition has held, and the worst value since.
#[derive(Clone, Copy, Debug)]
struct ConditionPeriod {
    since_us: u64,
    /// The end of the last interval.
    until_us: u64,
    /// When the alert fired.
    fired_us: u64,
    worst: f64,
}

impl WatchedAlert {
    pub(super) fn new(alert: Alert, subjects: &FigureSubjects) -> Result<Self, AlertError> {
        let (figure, limit) = alert.resolve(|figure| subjects.check(figure))?;
        let window = AlertWindow::new(figure.clone(), subjects, alert.window());
        Ok(Self {
            alert,
            figure,
            limit,
            window,
            state: ConditionState::Idle,
            value: 0.0,
            has_told_why: false,
        })
    }

    pub(super) fn alert(&self) -> &Alert {
        &self.alert
    }

    /// Adds an interval, with what there is at its end.
    pub(super) fn observe(
        &mut self,
        interval: &AlertInterval<'_>,
        present: IntervalGauges,
    ) -> Option<Transition> {
        self.window.add(interval, present);
        if let ConditionState::Firing(held) = &mut self.state {
            held.until_us = interval.end_us;
        }
        match self.evaluate() {
            Ok((value, holds)) => {
                self.value = value;
                self.advance(interval.end_us, value, holds).map(Transition::Record)
            }
            Err(obstacle) => {
                if let ConditionState::Pending(_) = self.state {
                    self.state = ConditionState::Idle;
                }
                obstacle.filter(|_| !std::mem::replace(&mut self.has_told_why, true)).map(Transition::Unknown)
            }
        }
    }

    /// The figure's value, or its bound, and whether the condition holds.
    fn evaluate(&self) -> Result<(f64, bool), Option<Obstacle>> {
        let value =
            self.window.value().map_err(|too_few| too_few.map(|(n, needed)| Obstacle::TooFew(n, needed)))?;
        let holds = self.alert.condition().operator().judge(value, self.limit);
        Ok((value.number(), holds.ok_or(Some(Obstacle::Bound(value)))?))
    }

    fn advance(&mut self, now_us: u64, value: f64, holds: bool) -> Option<AlertRecord> {
        let operator = self.alert.condition().operator();
        if !holds {
            return match std::mem::replace(&mut self.state, ConditionState::Idle) {
                ConditionState::Firing(held) => Some(self.record(AlertState::Resolved, held)),
                ConditionState::Idle | ConditionState::Pending(_) => None,
            };
        }
        let worst = |before: f64| worse(operator, self.limit, before, value);
        match self.state {
            ConditionState::Firing(held) => {
                self.state = ConditionState::Firing(ConditionPeriod { worst: worst(held.worst), ..held });
                None
            }
            ConditionState::Idle => self.hold(ConditionPeriod {
                since_us: now_us,
                until_us: now_us,
                fired_us: now_us,
                worst: value,
            }),
            ConditionState::Pending(held) => self.hold(ConditionPeriod {
                until_us: now_us,
                fired_us: now_us,
                worst: worst(held.worst),
                ..held
            }),
        }
    }

    /// Fires if the condition has held for long enough.
    fn hold(&mut self, held: ConditionPeriod) -> Option<AlertRecord> {
        let has_held = u128::from(held.until_us - held.since_us) >= self.alert.hold().as_micros();
        self.state = if has_held { ConditionState::Firing(held) } else { ConditionState::Pending(held) };
        has_held.then(|| self.record(AlertState::Fired, held))
    }

    /// The record of an alert that is changed or switched off while it fires.
    pub(super) fn withdraw(self) -> Option<AlertRecord> {
        match self.state {
            ConditionState::Firing(held) => Some(self.record(AlertState::Withdrawn, held)),
            ConditionState::Idle | ConditionState::Pending(_) => None,
        }
    }

    /// A record without its number.
    fn record(&self, state: AlertState, held: ConditionPeriod) -> AlertRecord {
        let record = AlertRecord {
            number: 0,
            state,
            condition: self.alert.to_string(),
            figure: self.figure.name(),
            operator: self.alert.condition().operator().sign().to_owned(),
            limit: self.limit,
            value: self.value,
            worst: held.worst,
            hold_us: self.alert.hold().as_micros() as u64,
            window_us: self.alert.window().as_micros() as u64,
            firing_us: held.until_us.saturating_sub(held.fired_us),
            resolution_us: self.window.resolution().us(),
            ..AlertRecord::default()
        };
        record.with_sentence()
    }
}

/// The value that misses a good one by more.
fn worse(operator: Operator, limit: f64, a: f64, b: f64) -> f64 {
    match operator {
        Operator::Above | Operator::AtLeast => a.max(b),
        Operator::Below | Operator::AtMost => a.min(b),
        Operator::Equal | Operator::Unequal => {
            if (a - limit).abs() >= (b - limit).abs() {
                a
            } else {
                b
            }
        }
    }
}
