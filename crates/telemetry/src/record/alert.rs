//! The record of an alert that fires, resolves or is withdrawn.

use crate::alerts::RoundedSeconds;
use crate::figures::{FigureName, FigureUnit, operator_at};
use crate::metrics::{KnownValue, TimeResolution};
use crate::record::field;
use crate::record::keywords::keyword_enum;
use crate::record::wire::wire;

keyword_enum! {
    /// The state of an alert.
    AlertState {
        /// Its condition has held for as long as it must.
        #[default]
        Fired = "fired",
        /// Its condition no longer holds.
        Resolved = "resolved",
        /// It was changed or switched off while it was firing.
        Withdrawn = "withdrawn",
    }
}

wire! {
    /// An alert fired, or no longer fires.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct AlertRecord {
        /// Its number within the run, from 1.
        pub number: u64 = &field::ALERT,
        /// Its outcome.
        pub state: AlertState = &field::ALERT_STATE,
        /// The alert as it was written.
        pub condition: String = &field::ALERT_CONDITION,
        /// The figure's full name.
        pub figure: String = &field::ALERT_FIGURE,
        /// The sign between value and limit.
        pub operator: String = &field::ALERT_OPERATOR,
        /// The limit of the figure, in the figure's unit.
        pub limit: f64 = &field::ALERT_LIMIT,
        /// The figure over the last window whose value is known, in its unit.
        pub value: f64 = &field::ALERT_VALUE,
        /// The worst value since the condition held.
        pub worst: f64 = &field::ALERT_WORST,
        /// How long the condition must hold, in microseconds.
        pub hold_us: u64 = &field::ALERT_HOLD,
        /// The time that a value is of, in microseconds.
        pub window_us: u64 = &field::ALERT_WINDOW,
        /// How long it has been firing, in microseconds; 0 when it fires.
        pub firing_us: u64 = &field::ALERT_FIRING,
        /// Resolution of the figure's times, in microseconds; 0 if they are of no log.
        pub resolution_us: u64 = &field::LOG_RESOLUTION,
    }
}

impl AlertRecord {
    /// The figure's unit.
    pub fn unit(&self) -> FigureUnit {
        self.figure.parse().map_or(FigureUnit::Count, |name: FigureName| name.unit())
    }

    /// The figure's name as it was written.
    pub fn name(&self) -> &str {
        operator_at(&self.condition).map_or(&*self.figure, |at| self.condition[..at].trim())
    }

    /// A value of its figure: exact, or a bound of a log.
    pub fn known(&self, value: f64) -> KnownValue {
        let name = self.figure.parse::<FigureName>().ok();
        let figure = name.and_then(|name| name.figures().next());
        let resolution = TimeResolution::from_us(self.resolution_us);
        figure.map_or(KnownValue::Exact(value), |figure| figure.known(value, resolution))
    }

    /// A value of its figure, for people.
    pub fn shown(&self, value: f64) -> String {
        self.unit().show_known(self.known(value))
    }

    /// The event, in a sentence.
    pub fn sentence(&self) -> String {
        let Self { operator, condition, limit, value, worst, hold_us, window_us, firing_us, .. } = self;
        let (unit, name) = (self.unit(), self.name());
        let value = self.shown(*value);
        let firing = RoundedSeconds(*firing_us);
        match self.state {
            AlertState::Fired => {
                let hold =
                    if *hold_us > 0 { format!(" for {}", RoundedSeconds(*hold_us)) } else { String::new() };
                let limit = unit.show(*limit);
                format!(
                    "alert: {name} is {value} {operator} {limit}{hold} (over {})",
                    RoundedSeconds(*window_us)
                )
            }
            AlertState::Resolved => {
                let worst = self.shown(*worst);
                format!("alert resolved: {name} is {value}; worst {worst}, firing for {firing} ({condition})")
            }
            AlertState::Withdrawn => {
                format!("alert withdrawn after firing for {firing} ({condition})")
            }
        }
    }
}
