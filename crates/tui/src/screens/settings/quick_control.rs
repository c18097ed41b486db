//! The settings of the load that have keys of their own, and how a key moves them.

use crate::input::intent::{Direction, QuickControl};
use records::setting::Value;

use crate::theme::format;

/// Steps of the resumption ratio, in points of percent.
const RESUME_STEP: f64 = 10.0;
/// Whole numbers below this change in steps of one.
const SMALL: f64 = 20.0;

impl QuickControl {
    const ALL: [Self; 3] = [Self::Rate, Self::Resume, Self::Running];

    pub(crate) fn setting(self) -> &'static str {
        match self {
            Self::Rate => "load.rate",
            Self::Resume => "load.resume",
            Self::Running => "load.running",
        }
    }

    /// Returns why it cannot be moved, if the load does not support it.
    pub(crate) fn missing(self) -> &'static str {
        match self {
            Self::Rate => "a closed loop has no rate: each request waits for the answer to the last one",
            Self::Resume => "this load cannot change its resumption ratio",
            Self::Running => "this load cannot be started or stopped",
        }
    }

    pub(crate) fn moved(self, from: &Value, direction: Direction) -> Option<Value> {
        match (self, from) {
            (Self::Running, Value::Flag(on)) => Some(Value::Flag(!on)),
            (Self::Rate, Value::Number(rate)) if *rate > 0.0 => {
                Some(Value::Number(tenth_step(*rate, direction)))
            }
            (Self::Resume, Value::Number(percent)) => {
                let step = if direction == Direction::Up { RESUME_STEP } else { -RESUME_STEP };
                Some(Value::Number((percent + step).clamp(0.0, 100.0)))
            }
            _ => None,
        }
    }

    fn words(self, value: &Value) -> String {
        match (self, value) {
            (Self::Rate, Value::Number(rate)) => format!("{}/s", format::plain(*rate)),
            (Self::Resume, Value::Number(percent)) => format!("resume {}%", format::plain(*percent)),
            (Self::Running, Value::Flag(on)) => if *on { "start" } else { "stop" }.to_owned(),
            (_, other) => other.to_string(),
        }
    }
}

/// Formats a value as briefly as its line needs.
pub(crate) fn words(name: &str, value: &Value) -> String {
    let control = QuickControl::ALL.into_iter().find(|control| control.setting() == name);
    control.map_or_else(|| format!("{name} {value}"), |control| control.words(value))
}

/// Returns the next value of any setting; `None` if its values have no order.
pub(crate) fn step(value: &Value, direction: Direction) -> Option<Value> {
    let down = direction == Direction::Down;
    match *value {
        Value::Flag(on) => Some(Value::Flag(!on)),
        Value::Number(number) if number.fract() == 0.0 && (0.0..SMALL).contains(&number) => {
            let stepped = if down { number - 1.0 } else { number + 1.0 };
            Some(Value::Number(stepped.max(0.0)))
        }
        Value::Number(number) if number > 0.0 => Some(Value::Number(tenth_step(number, direction))),
        Value::Number(_) | Value::Text(_) => None,
    }
}

/// Returns a tenth more or less, rounded to two digits: 1000, 1100, 1200; never zero.
fn tenth_step(number: f64, direction: Direction) -> f64 {
    let second_digit = |number: f64| 10_f64.powf(number.log10().floor() - 1.0);
    let tenth = (number / 10.0).max(second_digit(number));
    let stepped = if direction == Direction::Up { number + tenth } else { number - tenth };
    let unit = second_digit(stepped);
    let rounded = (stepped / unit).round() * unit;
    // Powers of ten below one are not exact; a thousandth is the finest step.
    ((rounded * 1e3).round() / 1e3).max(0.001)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_step_by_a_tenth_to_two_digits_and_come_back() {
        let step = |rate, direction| format::plain(tenth_step(rate, direction));
        let up = |rate| step(rate, Direction::Up);
        let down = |rate| step(rate, Direction::Down);
        assert_eq!(
            [up(1000.0), up(1100.0), up(9900.0), up(1.0), up(0.5)],
            ["1100", "1200", "11000", "1.1", "0.55"]
        );
        assert_eq!([down(1000.0), down(1100.0), down(1.1), down(0.001)], ["900", "990", "0.99", "0.001"]);
        let mut rate = 1.0;
        for _ in 0..200 {
            let next = tenth_step(rate, Direction::Up);
            assert!(next > rate && next < rate * 1.2, "{rate} to {next}");
            rate = next;
        }
    }

    #[test]
    fn small_whole_numbers_step_by_one() {
        let up = |number| step(&Value::Number(number), Direction::Up);
        assert_eq!([up(0.0), up(1.0), up(19.0)], [1.0, 2.0, 20.0].map(|n| Some(Value::Number(n))));
        assert_eq!(step(&Value::Number(0.0), Direction::Down), Some(Value::Number(0.0)));
        assert_eq!(step(&Value::Text("x".into()), Direction::Up), None);
    }
}
