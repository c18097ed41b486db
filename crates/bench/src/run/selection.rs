//! Which part of a scenario is run.

use std::time::Duration;

use records::text::quantity;

use crate::scenario::{BenchCase, ROUNDS_MIN, Scenario};

/// The shortest scaled time: the generator takes none shorter.
const TIME_MIN: Duration = Duration::from_millis(1);
/// With `--quick` the warm-up takes at most this share of a case's time.
const QUICK_WARMUP: f64 = 0.25;

/// Which part of a scenario is run, and how long.
pub struct Selection<'a> {
    /// Only the cases marked quick, in six rounds.
    pub is_quick: bool,
    /// The number of rounds; `None` for the scenario's.
    pub rounds: Option<u32>,
    /// The factor of all times and counts of requests; `None` leaves them.
    pub scale: Option<f64>,
    /// The names of the targets; all if it is empty.
    pub targets: &'a [String],
    /// Whether a case of this name is run.
    pub has_case: &'a dyn Fn(&str) -> bool,
}

/// Why a part of a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// The scenario has no target of this name.
    #[error("--only {0}: there is no such target; there are {1}")]
    Target(String, String),
    /// No case is left.
    #[error("no case is left to run; there are {0}")]
    Case(String),
    #[error("{0}")]
    Cells(String),
}

impl Selection<'_> {
    /// Selects this part of the scenario; also returns omitted and changed parts, in words.
    ///
    /// # Errors
    /// If nothing is left, or too much.
    pub fn apply(&self, mut scenario: Scenario) -> Result<(Scenario, Vec<String>), SelectionError> {
        let mut changes = Vec::new();
        let names: Vec<String> = scenario.cases.iter().map(|case| case.name.clone()).collect();
        self.keep_targets(&mut scenario, &mut changes)?;
        self.keep_cases(&mut scenario, &mut changes);
        if scenario.cases.is_empty() {
            return Err(SelectionError::Case(names.join(", ")));
        }
        let rounds = self.rounds.or_else(|| self.is_quick.then_some(ROUNDS_MIN));
        if let Some(rounds) = rounds.filter(|rounds| *rounds != scenario.rounds) {
            changes.push(format!("{rounds} rounds instead of {}", scenario.rounds));
            scenario.rounds = rounds;
        }
        if self.is_quick {
            scenario.cases.iter_mut().for_each(shorten);
        }
        if let Some(factor) = self.scale {
            changes.push(format!("all times and counts of requests were multiplied by {factor}"));
            scenario.cases.iter_mut().for_each(|case| scale(case, factor));
        }
        match scenario.excess() {
            Some(excess) => Err(SelectionError::Cells(excess)),
            None => Ok((scenario, changes)),
        }
    }

    fn keep_targets(&self, scenario: &mut Scenario, changes: &mut Vec<String>) -> Result<(), SelectionError> {
        let names = || scenario.targets.iter().map(|target| target.name.clone()).collect::<Vec<_>>();
        let is_known = |name: &&String| scenario.targets.iter().any(|target| target.name == **name);
        if let Some(unknown) = self.targets.iter().find(|name| !is_known(name)) {
            return Err(SelectionError::Target(records::text::clean::text(unknown), names().join(", ")));
        }
        if self.targets.is_empty() {
            return Ok(());
        }
        let left_out: Vec<String> = names().into_iter().filter(|name| !self.targets.contains(name)).collect();
        scenario.targets.retain(|target| self.targets.contains(&target.name));
        if !left_out.is_empty() {
            changes.push(format!("without the targets {}", left_out.join(", ")));
        }
        if let Some(first) = scenario.targets.first()
            && left_out.contains(&scenario.baseline)
        {
            changes.push(format!("the baseline is {} instead of {}", first.name, scenario.baseline));
            let first = first.name.clone();
            changes.extend(scenario.replace_baseline(&first));
        }
        scenario.assertions.retain(|assertion| !left_out.contains(&assertion.target));
        scenario.published.retain(|figure| !left_out.contains(&figure.target));
        Ok(())
    }

    fn keep_cases(&self, scenario: &mut Scenario, changes: &mut Vec<String>) {
        let is_kept =
            |case: &BenchCase| (self.has_case)(&case.name) && (!self.is_quick || case.quick.is_some());
        let left_out = scenario.retain_cases(is_kept);
        if !left_out.is_empty() {
            changes.push(format!("without the cases {}", left_out.join(", ")));
        }
    }
}

/// Multiplies the times and the count of requests of a case.
fn scale(case: &mut BenchCase, factor: f64) {
    let scaled = |time: Duration| time.mul_f64(factor).max(TIME_MIN);
    case.duration = case.duration.map(scaled);
    if !case.warmup.is_zero() {
        case.warmup = scaled(case.warmup);
    }
    for flag in &mut case.flags {
        if let Some((name, value)) = flag.split_once('=')
            && let Some(value) = scaled_value(name, value, factor)
        {
            *flag = format!("{name}={value}");
        }
    }
}

/// The value of a flag that is a time or a count of requests.
fn scaled_value(name: &str, value: &str, factor: f64) -> Option<String> {
    match name {
        "--requests" => {
            let requests = value.parse::<f64>().ok()? * factor;
            Some(format!("{:.0}", requests.max(1.0)))
        }
        "--ramp-up" => scaled_time(value, factor),
        // Stages such as 100..1000/30s+1000/60s.
        "--rate" if value.contains('/') => {
            let stage = |stage: &str| match stage.split_once('/') {
                Some((rates, time)) => Some(format!("{rates}/{}", scaled_time(time, factor)?)),
                None => Some(stage.to_owned()),
            };
            Some(value.split('+').map(stage).collect::<Option<Vec<_>>>()?.join("+"))
        }
        _ => None,
    }
}

fn scaled_time(text: &str, factor: f64) -> Option<String> {
    let seconds = quantity::parse(text, "s")? * factor;
    // To a millisecond, which is the shortest that all flags take.
    Some(quantity::shown((seconds * 1e3).round().max(1.0) / 1e3, "s"))
}

/// Shortens a case for `--quick`.
fn shorten(case: &mut BenchCase) {
    if let Some(quick) = case.for_quick() {
        *case = quick;
        case.warmup =
            case.duration.map_or(case.warmup, |length| case.warmup.min(length.mul_f64(QUICK_WARMUP)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "
baseline = \"b\"
[[target]]
name = \"a\"
template = \"tlsdash-tcp\"
[[target]]
name = \"b\"
template = \"nginx-stream\"
[[case]]
name = \"short\"
path = \"/bytes/13\"
measure = \"load\"
requests = 5000
ramp-up = \"10s\"
quick = \"2s\"
[[case]]
name = \"long\"
path = \"/bytes/13\"
measure = \"load\"
rate = \"100..1000/30s+1000/90s\"
warmup = \"2s\"
[[assert]]
target = \"a\"
case = \"long\"
condition = \"ratio < 0.8\"
";

    const ALL: Selection<'_> =
        Selection { is_quick: false, rounds: None, scale: None, targets: &[], has_case: &|_| true };

    fn apply(selection: &Selection<'_>) -> Result<(Scenario, Vec<String>), SelectionError> {
        selection.apply(Scenario::parse("example.toml", SCENARIO, &|_| Ok(())).unwrap())
    }

    #[test]
    fn without_a_selection_nothing_changes() {
        let (scenario, changes) = apply(&ALL).unwrap();
        assert_eq!(scenario, Scenario::parse("example.toml", SCENARIO, &|_| Ok(())).unwrap());
        assert_eq!(changes, Vec::<String>::new());
    }

    #[test]
    fn quick_runs_short_cases_in_six_rounds() {
        let (scenario, changes) = apply(&Selection { is_quick: true, ..ALL }).unwrap();
        assert_eq!((scenario.rounds, scenario.cases.len()), (ROUNDS_MIN, 1));
        assert_eq!(scenario.cases[0].duration, Some(Duration::from_secs(2)));
        assert_eq!(scenario.assertions, []);
        assert_eq!(changes, ["without the cases long", "6 rounds instead of 10"]);
    }

    #[test]
    fn a_scale_changes_times_and_counts() {
        let (scenario, changes) = apply(&Selection { scale: Some(0.1), ..ALL }).unwrap();
        let [short, long] = &scenario.cases[..] else { panic!("{:?}", scenario.cases) };
        assert_eq!((short.flag("requests"), short.flag("ramp-up")), (Some("500"), Some("1s")));
        assert_eq!(long.flag("rate"), Some("100..1000/3s+1000/9s"));
        assert_eq!(long.warmup, Duration::from_millis(200));
        assert_eq!(changes, ["all times and counts of requests were multiplied by 0.1"]);
    }

    #[test]
    fn a_baseline_that_is_left_out_is_replaced() {
        let (scenario, changes) = apply(&Selection { targets: &["a".to_owned()], ..ALL }).unwrap();
        assert_eq!(scenario.baseline, "a");
        assert_eq!(changes, ["without the targets b", "the baseline is a instead of b"]);
    }

    #[test]
    fn cases_that_are_not_for_the_new_baseline_are_left_out() {
        let mut scenario = Scenario::parse("example.toml", SCENARIO, &|_| Ok(())).unwrap();
        scenario.cases[1].only = vec!["b".to_owned()];
        let selection = Selection { targets: &["a".to_owned()], ..ALL };
        let (selected, changes) = selection.apply(scenario.clone()).unwrap();
        assert_eq!(selected.cases.iter().map(|case| &*case.name).collect::<Vec<_>>(), ["short"]);
        assert_eq!(selected.assertions, []);
        assert_eq!(changes[2..], ["without the cases long, which are not for a"]);
        scenario.cases[0].only = vec!["b".to_owned()];
        let none = selection.apply(scenario).unwrap_err().to_string();
        assert_eq!(none, "no case is left to run; there are short, long");
    }

    #[test]
    fn more_rounds_than_can_be_run_are_refused() {
        let refused = apply(&Selection { rounds: Some(2_501), ..ALL }).unwrap_err().to_string();
        let counts = "2 targets, 2 cases and 2501 rounds are 10004 cells";
        assert_eq!(refused, format!("{counts}; at most 10000 are allowed"));
        assert!(apply(&Selection { rounds: Some(2_500), ..ALL }).is_ok());
    }

    #[test]
    fn what_is_not_there_is_named() {
        let unknown = apply(&Selection { targets: &["c".to_owned()], ..ALL }).unwrap_err().to_string();
        assert_eq!(unknown, "--only c: there is no such target; there are a, b");
        let none = apply(&Selection { has_case: &|_| false, ..ALL }).unwrap_err().to_string();
        assert_eq!(none, "no case is left to run; there are short, long");
    }
}
