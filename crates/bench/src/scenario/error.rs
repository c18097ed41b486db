//! Why a text is not a scenario.

use model::figures::nearest;
use records::text::clean;

/// Why a text is not a scenario. One printable line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}{}: {}", line.map_or_else(String::new, |line| format!(" line {line}")), clean::line(problem))]
pub struct ScenarioError {
    /// The name of the scenario.
    pub(super) name: String,
    /// The line, from 1; `None` if no line alone is at fault.
    pub(super) line: Option<usize>,
    /// The problem, and a remedy.
    pub(super) problem: String,
}

/// Reports an unknown name: `there is no key "rond"; did you mean "rounds"?`
pub(super) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("there is no {kind} {name:?}; did you mean {nearest:?}?"),
        None => format!("there is no {kind} {name:?}; there are {}", known.join(", ")),
    }
}
