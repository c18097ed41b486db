//! The keys that change the load: what they ask for, and what has been asked and not been answered yet.
//!
//! What is shown as being in force always comes from records. Only the next step of a key that is pressed again
//! starts from what was asked, since the records follow a moment later.

use std::time::Duration;

use telemetry::model::Run;
use telemetry::{Command, Setting, Value};

use crate::clock::Now;
use crate::format;

/// How long the records may take to show a change before it counts as refused.
const ANSWER_PATIENCE: Duration = Duration::from_secs(3);
/// Steps of the resumption ratio, in points of percent.
const RESUME_STEP: f64 = 10.0;

/// A setting of the load that has keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lever {
    /// Requests a second.
    Rate,
    /// Share of resuming connections, in percent.
    Resume,
    /// Whether requests fall due.
    Running,
}

/// Which way a key moves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Down,
    Up,
}

impl Lever {
    fn setting(self) -> &'static str {
        match self {
            Self::Rate => "load.rate",
            Self::Resume => "load.resume",
            Self::Running => "load.running",
        }
    }

    /// Why it cannot be moved, where the run has a load without it.
    fn missing(self) -> &'static str {
        match self {
            Self::Rate => "a closed loop has no rate: each request waits for the answer to the last one",
            Self::Resume => "this load cannot change its resumption ratio",
            Self::Running => "this load cannot be started or stopped",
        }
    }

    fn moved(self, from: &Value, direction: Direction) -> Option<Value> {
        match (self, from) {
            (Self::Running, Value::Flag(on)) => Some(Value::Flag(!on)),
            (Self::Rate, Value::Number(rate)) if *rate > 0.0 => {
                Some(Value::Number(rate_step(*rate, direction)))
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

/// A tenth more or less, to two digits: 1000, 1100, 1200, and never nothing.
fn rate_step(rate: f64, direction: Direction) -> f64 {
    let second_digit = |number: f64| 10_f64.powf(number.log10().floor() - 1.0);
    let tenth = (rate / 10.0).max(second_digit(rate));
    let stepped = if direction == Direction::Up { rate + tenth } else { rate - tenth };
    let unit = second_digit(stepped);
    let rounded = (stepped / unit).round() * unit;
    // Powers of ten below one are not exact; a thousandth is as fine as a rate goes.
    ((rounded * 1e3).round() / 1e3).max(0.001)
}

/// Something that was asked for.
#[derive(Clone, Debug)]
struct Ask {
    lever: Lever,
    value: Value,
    at: Now,
}

/// What has been asked of the load and not been answered yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    asks: Vec<Ask>,
}

impl Control {
    /// The command that moves a lever one step.
    ///
    /// # Errors
    /// With a sentence for the person, where it cannot be moved.
    pub(super) fn pull(
        &mut self,
        run: Option<&Run>,
        lever: Lever,
        direction: Direction,
        now: Now,
    ) -> Result<Command, &'static str> {
        let run = run.ok_or("there is no run yet")?;
        if run.stopped().is_some() {
            return Err("the run has ended");
        }
        let has_load = run.load().is_some() || run.settings().iter().any(|s| s.name.starts_with("load."));
        if !has_load {
            return Err("this run has no load: start tlsdash with --load PLAN for one");
        }
        let setting = run.setting(lever.setting()).ok_or_else(|| lever.missing())?;
        let asked = self.asks.iter().find(|ask| ask.lever == lever).map(|ask| &ask.value);
        let value = lever.moved(asked.unwrap_or(&setting.value), direction).ok_or_else(|| lever.missing())?;
        let value = within(setting, value);
        self.asks.retain(|ask| ask.lever != lever);
        self.asks.push(Ask { lever, value: value.clone(), at: now });
        Ok(Command::Set { name: setting.name.clone(), value })
    }

    /// Forgets what the records confirm, and what they do not confirm in time.
    pub(super) fn settle(&mut self, run: &Run, now: Now) {
        self.asks.retain(|ask| {
            let in_force = run.setting(ask.lever.setting()).is_some_and(|setting| setting.value == ask.value);
            let age = now.instant.saturating_duration_since(ask.at.instant);
            !in_force && age < ANSWER_PATIENCE
        });
    }

    /// Forgets everything that was asked.
    pub(super) fn give_up(&mut self) {
        self.asks.clear();
    }

    /// True while an answer is due.
    pub(super) fn is_waiting(&self) -> bool {
        !self.asks.is_empty()
    }

    /// What was asked, in words; empty if everything has been answered.
    pub(crate) fn pending(&self) -> String {
        let words: Vec<String> = self.asks.iter().map(|ask| ask.lever.words(&ask.value)).collect();
        words.join(", ")
    }
}

fn within(setting: &Setting, value: Value) -> Value {
    match (value, setting.range) {
        (Value::Number(number), Some((low, high))) => Value::Number(number.max(low).min(high)),
        (value, _) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_step_by_a_tenth_to_two_digits_and_come_back() {
        let step = |rate, direction| format::plain(rate_step(rate, direction));
        let up = |rate| step(rate, Direction::Up);
        let down = |rate| step(rate, Direction::Down);
        assert_eq!(
            [up(1000.0), up(1100.0), up(9900.0), up(1.0), up(0.5)],
            ["1100", "1200", "11000", "1.1", "0.55"]
        );
        assert_eq!([down(1000.0), down(1100.0), down(1.1), down(0.001)], ["900", "990", "0.99", "0.001"]);
        let mut rate = 1.0;
        for _ in 0..200 {
            let next = rate_step(rate, Direction::Up);
            assert!(next > rate && next < rate * 1.2, "{rate} to {next}");
            rate = next;
        }
    }
}
