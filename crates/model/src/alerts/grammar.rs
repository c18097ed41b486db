//! The words of an alert: `response.p99 > 5ms for 30s over 10s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use records::text::quantity;

use crate::figures::{AbsentSubject, Condition, ConditionError, Figure, UnknownFigure, WrongUnit};

/// The window of an alert that names none.
const WINDOW: Duration = Duration::from_secs(10);
const WINDOW_MIN: Duration = Duration::from_millis(100);
pub(super) const WINDOW_MAX: Duration = Duration::from_secs(3_600);
const HOLD_MAX: Duration = Duration::from_secs(86_400);
/// Longest alert, in characters: records and settings keep no more of a text.
const CHARS_MAX: usize = 200;

/// A condition that is watched while a run lasts.
#[derive(Clone, Debug, PartialEq)]
pub struct Alert {
    text: String,
    condition: Condition,
    hold: Duration,
    window: Duration,
}

/// Why a text is not an alert, or not an alert for this run. Positions count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlertError {
    /// The operator is missing at this place.
    #[error("expected <, <=, >, >=, == or != at character {0}, as in 'response.p99 > 5ms for 30s'")]
    NoOperator(usize),
    #[error(transparent)]
    Unknown(UnknownFigure),
    /// The value at this place cannot be read.
    #[error("expected a number, or a value such as 5ms, 90%, 100/s or 1MB, at character {0}")]
    Value(usize),
    /// A time is missing or cannot be read.
    #[error("expected {expected} after '{word}' at character {character}")]
    Clause {
        /// `for` or `over`.
        word: &'static str,
        character: usize,
        expected: &'static str,
    },
    /// A clause occurs a second time at this place.
    #[error("a second '{0}' at character {1}")]
    Twice(&'static str, usize),
    #[error("it has {0} characters; at most {CHARS_MAX} are allowed")]
    TooLong(usize),
    /// The value has another unit than the figure.
    #[error(transparent)]
    Unit(WrongUnit),
    /// The figure is of the whole run only.
    #[error("{0} is a figure of a whole run and has no value over a window")]
    WholeRun(String),
    /// The run lacks the subject of the figure.
    #[error("the run has no {0}")]
    Absent(AbsentSubject),
}

impl Alert {
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// How long the condition must hold.
    pub fn hold(&self) -> Duration {
        self.hold
    }

    /// The time that the figure is of.
    pub fn window(&self) -> Duration {
        self.window
    }

    /// The figure in a run with the given subjects, and the limit in the figure's unit.
    ///
    /// # Errors
    /// With the subject that the run lacks, or the accepted form of a value.
    pub fn resolve(
        &self,
        check: impl Fn(&Figure) -> Result<(), AbsentSubject>,
    ) -> Result<(Figure, f64), AlertError> {
        let figure = self.condition.figure().first_of(check);
        let figure = figure.map_err(AlertError::Absent)?;
        if !figure.has_windows() {
            return Err(AlertError::WholeRun(figure.name()));
        }
        let limit = self.condition.limit_of(&figure).map_err(AlertError::Unit)?;
        Ok((figure, limit))
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for Alert {
    type Err = AlertError;

    fn from_str(text: &str) -> Result<Self, AlertError> {
        let text = records::text::clean::text(text.trim());
        let chars = text.chars().count();
        if chars > CHARS_MAX {
            return Err(AlertError::TooLong(chars));
        }
        let clauses = clauses(&text);
        let end = clauses.first().map_or(text.len(), |clause| clause.at);
        let condition = condition(&text, end)?;
        let (mut hold, mut window) = (None, None);
        for (i, clause) in clauses.iter().enumerate() {
            let until = clauses.get(i + 1).map_or(text.len(), |next| next.at);
            let (slot, bounds, expected) = match clause.word {
                "for" => (&mut hold, (Duration::ZERO, HOLD_MAX), "a time up to 24h such as 30s"),
                _ => (&mut window, (WINDOW_MIN, WINDOW_MAX), "a time from 100ms to 1h such as 10s"),
            };
            let (word, character) = (clause.word, text[..clause.at].chars().count() + 1);
            if slot.is_some() {
                return Err(AlertError::Twice(word, character));
            }
            let time = quantity::time(&text[clause.at + word.len()..until]);
            let time = time.filter(|time| (bounds.0..=bounds.1).contains(time));
            let Some(time) = time else {
                return Err(AlertError::Clause { word, character, expected });
            };
            *slot = Some(time);
        }
        let alert =
            Self { text, condition, hold: hold.unwrap_or_default(), window: window.unwrap_or(WINDOW) };
        alert.resolve(|_| Ok(())).map(|_| alert)
    }
}

/// A `for` or `over` of an alert, and where it is.
struct Clause {
    word: &'static str,
    at: usize,
}

fn clauses(text: &str) -> Vec<Clause> {
    let mut at = 0;
    let mut found = Vec::new();
    for part in text.split_inclusive(char::is_whitespace) {
        if let Some(word) = ["for", "over"].into_iter().find(|word| part.trim_end() == *word) {
            found.push(Clause { word, at });
        }
        at += part.len();
    }
    found
}

/// Reads the condition, which ends at a byte of the text.
fn condition(text: &str, end: usize) -> Result<Condition, AlertError> {
    let text = text[..end].trim_end();
    let character = |byte: usize| text[..byte].chars().count() + 1;
    text.parse().map_err(|error| match error {
        ConditionError::NoOperator(_) => {
            let name = text.split_whitespace().next().unwrap_or_default();
            let rest = text[name.len()..].trim_start();
            AlertError::NoOperator(character(text.len() - rest.len()))
        }
        ConditionError::Unknown(_, error) => AlertError::Unknown(error),
        ConditionError::Value(_) => {
            let signs = ['<', '>', '=', '!'];
            let value =
                text.trim_start_matches(|c| !signs.contains(&c)).trim_start_matches(signs).trim_start();
            AlertError::Value(character(text.len() - value.len()))
        }
    })
}
