//! Why a text is not a scenario.

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

/// The minimum similarity (Jaro-Winkler) of a suggested name.
const SIMILARITY_MIN: f64 = 0.8;

/// Reports an unknown name: `there is no key "rond"; did you mean "rounds"?`
pub(super) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let similarity = |candidate: &&&str| strsim::jaro_winkler(candidate, name);
    let nearest = known.iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    match nearest.filter(|nearest| similarity(nearest) >= SIMILARITY_MIN) {
        Some(nearest) => format!("there is no {kind} {name:?}; did you mean {nearest:?}?"),
        None => format!("there is no {kind} {name:?}; there are {}", known.join(", ")),
    }
}
