//! The figure that an alert's record is about.

use std::fmt;

use super::{FigureName, FigureUnit, significant_digits};
use records::kinds::{AlertRecord, AlertSentence, AlertState};
use records::metrics::{KnownValue, TimeResolution};

/// The values of an alert's record, as those of its figure.
pub trait AlertFigure {
    fn unit(&self) -> FigureUnit;
    /// A value of the figure: exact, or a bound of a log.
    fn known(&self, value: f64) -> KnownValue;
    /// A value of the figure, for people.
    fn shown(&self, value: f64) -> String {
        self.unit().show_known(self.known(value))
    }
    /// The record with the sentence that its other members make.
    #[must_use]
    fn with_sentence(self) -> Self;
}

impl AlertFigure for AlertRecord {
    fn unit(&self) -> FigureUnit {
        self.figure.parse().map_or(FigureUnit::Count, |name: FigureName| name.unit())
    }

    fn known(&self, value: f64) -> KnownValue {
        let name = self.figure.parse::<FigureName>().ok();
        let figure = name.and_then(|name| name.figures().next());
        let resolution = TimeResolution::from_us(self.resolution_us);
        figure.map_or(KnownValue::Exact(value), |figure| figure.known(value, resolution))
    }

    fn with_sentence(self) -> Self {
        Self { sentence: AlertSentence(sentence(&self)), ..self }
    }
}

/// The event of an alert's record, in a sentence.
fn sentence(record: &AlertRecord) -> String {
    let AlertRecord { operator, condition, limit, value, worst, hold_us, window_us, firing_us, .. } = record;
    let (unit, name) = (record.unit(), record.name());
    let value = record.shown(*value);
    let firing = RoundedSeconds(*firing_us);
    match record.state {
        AlertState::Fired => {
            let hold =
                if *hold_us > 0 { format!(" for {}", RoundedSeconds(*hold_us)) } else { String::new() };
            let (limit, window) = (unit.show(*limit), RoundedSeconds(*window_us));
            format!("alert: {name} is {value} {operator} {limit}{hold} (over {window})")
        }
        AlertState::Resolved => {
            let worst = record.shown(*worst);
            format!("alert resolved: {name} is {value}; worst {worst}, firing for {firing} ({condition})")
        }
        AlertState::Withdrawn => format!("alert withdrawn after firing for {firing} ({condition})"),
    }
}

/// A time in microseconds, shown in seconds.
pub(crate) struct RoundedSeconds(pub(crate) u64);

impl fmt::Display for RoundedSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", significant_digits(self.0 as f64 / 1e6))
    }
}
