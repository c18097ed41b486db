//! The plan of a comparison: which cells are measured, in which order.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::missing_program::MissingTarget;
use crate::results::{CellKey, CellResult};
use crate::scenario::{BenchCase, BenchTarget, Question, Scenario};

/// The format of `scenario.json` and `cells.jsonl`. It grows when a value changes its meaning.
pub(crate) const PLAN_FORMAT: u32 = 2;

/// The time of a cell besides its load: start, check and stop of the target.
const CELL_OVERHEAD: Duration = Duration::from_millis(700);
/// The length that is planned for a load whose length depends on the target.
const UNKNOWN_LENGTH: Duration = Duration::from_secs(10);

/// The content of `scenario.json`: scenario, seed and rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// `PLAN_FORMAT`.
    pub format: u32,
    /// The scenario, without omitted parts.
    pub scenario: Scenario,
    /// Omitted or changed parts of the scenario, in words.
    pub changes: Vec<String>,
    /// The seed of the random orders.
    pub seed: u64,
    /// The rates that were found for cost cases, by case.
    pub rates: BTreeMap<String, CommonRate>,
}

/// A rate that all targets sustain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommonRate {
    /// Requests per second.
    pub rate: f64,
    /// How it was found, in words.
    pub origin: String,
}

#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// The round, from 1.
    pub round: u32,
    /// The position of the target in the random order, from 1.
    pub position: u32,
    pub target: &'a BenchTarget,
    pub case_index: usize,
    pub case: &'a BenchCase,
}

impl<'a> Cell<'a> {
    pub(super) fn key(&self) -> CellKey<'a> {
        (self.round, &self.case.name, &self.target.name)
    }

    /// Whether both are of one round and case.
    pub(super) fn is_compared_with(&self, other: &Self) -> bool {
        (self.round, self.case_index) == (other.round, other.case_index)
    }

    /// How long it is planned to take.
    pub(super) fn planned(&self) -> Duration {
        let search = Duration::from_secs(6) * u32::from(self.case.question == Question::Capacity);
        self.case.length().unwrap_or(UNKNOWN_LENGTH) + CELL_OVERHEAD + search
    }
}

impl RunPlan {
    pub fn new(scenario: Scenario, seed: u64) -> Self {
        Self { format: PLAN_FORMAT, scenario, changes: Vec::new(), seed, rates: BTreeMap::new() }
    }

    /// Every cell in the order of measurement: all cases in each round, and for each case all its targets in
    /// succession, so compared runs are close in time. The order of the targets is random for each round and case.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        let Scenario { targets, cases, rounds, .. } = &self.scenario;
        (1..=*rounds).flat_map(move |round| {
            cases.iter().enumerate().flat_map(move |(case_index, case)| {
                let order = self.order(round, case_index).into_iter().map(|target| &targets[target]);
                let order = order.filter(|target| case.is_for(target));
                (1..).zip(order).map(move |(position, target)| Cell {
                    round,
                    position,
                    target,
                    case_index,
                    case,
                })
            })
        })
    }

    /// The cells of these targets that are to be measured: all of a round and case in which one has no result, since
    /// cells that are compared must be close in time.
    pub fn unmeasured<'a>(
        &'a self,
        done: &[CellResult],
        is_runnable: impl Fn(&BenchTarget) -> bool,
    ) -> Vec<Cell<'a>> {
        self.by_completeness(done, is_runnable).1
    }

    /// Forgets the rates of cases without a complete round: a target that sets the rate may be new.
    pub(super) fn forget_rates(&mut self, done: &[CellResult], is_runnable: impl Fn(&BenchTarget) -> bool) {
        let (complete, _) = self.by_completeness(done, is_runnable);
        let kept: HashSet<String> = complete.iter().map(|cell| cell.case.name.clone()).collect();
        self.rates.retain(|case, _| kept.contains(case));
    }

    /// The cells of these targets, in the order of measurement: those of rounds and cases in which each has a result, and
    /// the others.
    fn by_completeness<'a>(
        &'a self,
        done: &[CellResult],
        is_runnable: impl Fn(&BenchTarget) -> bool,
    ) -> (Vec<Cell<'a>>, Vec<Cell<'a>>) {
        let done: HashSet<CellKey<'_>> = done.iter().map(CellResult::key).collect();
        let cells: Vec<Cell<'a>> = self.cells().filter(|cell| is_runnable(cell.target)).collect();
        let is_complete = |cells: &&[Cell<'_>]| cells.iter().all(|cell| done.contains(&cell.key()));
        let (complete, others): (Vec<_>, Vec<_>) =
            cells.chunk_by(Cell::is_compared_with).partition(is_complete);
        (complete.concat(), others.concat())
    }

    /// The scenario as it was run, with notes on changed, found and missing parts. If the baseline is missing, the
    /// first target with cells takes its place.
    pub fn as_run(&self, missing: &[MissingTarget], done: &[CellResult]) -> Scenario {
        let mut scenario = self.scenario.clone();
        let rates = self
            .rates
            .iter()
            .map(|(case, found)| format!("{case}: {:.0} requests per second, {}", found.rate, found.origin));
        let seed = format!("order of the targets drawn from seed {}", self.seed);
        scenario.notes.extend(self.changes.iter().cloned().chain(rates).chain([seed]));
        scenario.notes.extend(missing.iter().map(|missing| missing.reason.clone()));
        let has_cells = |target: &str| done.iter().any(|cell| cell.target == target);
        let assertions = scenario.assertions.len();
        let is_missing = |target: &str| missing.iter().any(|missing| missing.name == target);
        scenario
            .assertions
            .retain(|assertion| !is_missing(&assertion.target) || has_cells(&assertion.target));
        match assertions - scenario.assertions.len() {
            0 => {}
            1 => scenario.notes.push("an assertion about a missing target was left out".to_owned()),
            count => scenario.notes.push(format!("{count} assertions about missing targets were left out")),
        }
        let first = self.scenario.targets.iter().find(|target| has_cells(&target.name));
        if let Some(first) = first
            && !has_cells(&self.scenario.baseline)
        {
            let note = format!("the baseline is {}, since {} has no cells", first.name, scenario.baseline);
            scenario.notes.push(note);
            let dropped = scenario.replace_baseline(&first.name);
            scenario.notes.extend(dropped);
        }
        scenario
    }

    /// The order of the targets of a case in a round. It depends only on the seed, so a resumed comparison continues
    /// as it began.
    fn order(&self, round: u32, case_index: usize) -> Vec<usize> {
        let round_and_case = (u64::from(round) << 32) | case_index as u64;
        // The generator spreads seeds that differ in few bits.
        let mut random =
            fastrand::Rng::with_seed(self.seed ^ fastrand::Rng::with_seed(round_and_case).u64(..));
        let mut order: Vec<usize> = (0..self.scenario.targets.len()).collect();
        random.shuffle(&mut order);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{BenchAssertion, Scenario};

    const SCENARIO: &str = "
rounds = 6
[[target]]
name = \"a\"
template = \"tlsdash-tcp\"
[[target]]
name = \"b\"
template = \"nginx-stream\"
[[target]]
name = \"c\"
template = \"haproxy-tcp\"
[[case]]
name = \"short\"
path = \"/bytes/13\"
[[case]]
name = \"long\"
path = \"/bytes/100000\"
";

    impl RunPlan {
        /// A plan of six rounds with three targets and two cases.
        pub(crate) fn example() -> Self {
            Self::new(Scenario::parse("example.toml", SCENARIO, &|_| Ok(())).unwrap(), 1)
        }
    }

    fn result(cell: Cell<'_>) -> CellResult {
        let (round, case, target) = cell.key();
        CellResult { round, case: case.to_owned(), target: target.to_owned(), ..CellResult::default() }
    }

    fn names(plan: &RunPlan) -> Vec<String> {
        plan.cells().map(|cell| format!("{} {} {}", cell.round, cell.case.name, cell.target.name)).collect()
    }

    #[test]
    fn each_round_has_each_cell_once_in_an_order_of_its_own() {
        let plan = RunPlan::example();
        let all = names(&plan);
        assert_eq!(all.len(), 6 * 2 * 3);
        let distinct: HashSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert!(all[..3].iter().all(|name| name.starts_with("1 short ")), "{all:?}");
        let orders: HashSet<String> =
            all.chunks(3).map(|round| round.iter().map(|name| &name[name.len() - 1..]).collect()).collect();
        assert!(orders.len() > 2, "{orders:?}");
        assert_eq!(names(&RunPlan::example()), all, "the seed decides");
        assert_ne!(names(&RunPlan { seed: 2, ..RunPlan::example() }), all);
    }

    #[test]
    fn a_case_runs_against_its_own_targets_only() {
        let mut plan = RunPlan::example();
        plan.scenario.cases[0].only = vec!["a".to_owned(), "c".to_owned()];
        let of = |case: &str| -> Vec<(String, u32)> {
            let cells = plan.cells().filter(|cell| cell.case.name == case);
            cells.map(|cell| (cell.target.name.clone(), cell.position)).collect()
        };
        let (short, long) = (of("short"), of("long"));
        assert_eq!((short.len(), long.len()), (6 * 2, 6 * 3));
        assert!(short.iter().all(|(target, position)| target != "b" && *position <= 2), "{short:?}");
        assert_eq!(plan.unmeasured(&[], |_| true).len(), short.len() + long.len());
    }

    #[test]
    fn a_baseline_without_cells_is_replaced_where_that_is_possible() {
        let mut plan = RunPlan::example();
        plan.scenario.cases[0].only = vec!["a".to_owned(), "c".to_owned()];
        let of_b = CellResult { round: 1, target: "b".to_owned(), ..CellResult::default() };
        let scenario = plan.as_run(&[], &[of_b]);
        assert_eq!((&*scenario.baseline, scenario.cases.len()), ("b", 1));
        let notes =
            ["the baseline is b, since a has no cells", "without the cases short, which are not for b"];
        assert!(scenario.notes.ends_with(&notes.map(str::to_owned)), "{:?}", scenario.notes);
    }

    #[test]
    fn an_assertion_about_a_missing_target_is_left_out() {
        let mut plan = RunPlan::example();
        let about = |target: &str| BenchAssertion {
            line: 1,
            target: target.to_owned(),
            case: None,
            condition: "ratio < 1".to_owned(),
        };
        plan.scenario.assertions = vec![about("b"), about("c")];
        let missing = ["b", "c"].map(|name| MissingTarget { name: name.to_owned(), reason: String::new() });
        let of = |target: &str| CellResult { target: target.to_owned(), ..CellResult::default() };
        let scenario = plan.as_run(&missing, &[of("a"), of("c")]);
        assert_eq!(scenario.assertions, [about("c")], "c has results of an earlier run");
        let note = "an assertion about a missing target was left out".to_owned();
        assert!(scenario.notes.contains(&note), "{:?}", scenario.notes);
        assert_eq!(plan.as_run(&[], &[of("a")]).assertions.len(), 2, "an interrupted run breaches them");
    }

    #[test]
    fn further_rounds_leave_the_earlier_ones_as_they_were() {
        let plan = RunPlan::example();
        let mut more = plan.clone();
        more.scenario.rounds = 8;
        assert_eq!(names(&more)[..36], names(&plan)[..]);
        let done: Vec<CellResult> = plan.cells().map(result).collect();
        assert_eq!(plan.unmeasured(&done, |_| true).len(), 0);
        assert_eq!(more.unmeasured(&done, |_| true).len(), 12);
        assert_eq!(plan.unmeasured(&done[..30], |_| true).len(), 6);
        assert_eq!(plan.unmeasured(&done[..31], |_| true).len(), 6, "the two that wait are compared with it");
    }

    #[test]
    fn a_program_that_was_installed_later_is_measured_beside_the_others() {
        let plan = RunPlan::example();
        let without_b = |target: &BenchTarget| target.name != "b";
        let done: Vec<CellResult> = plan.unmeasured(&[], without_b).into_iter().map(result).collect();
        assert_eq!(done.len(), 24);
        assert_eq!(plan.unmeasured(&done, without_b).len(), 0);
        assert_eq!(plan.unmeasured(&done, |_| true).len(), 36);
        let keys =
            |cells: Vec<Cell<'_>>| cells.iter().map(|cell| format!("{:?}", cell.key())).collect::<Vec<_>>();
        let again = plan.unmeasured(&done, |_| true);
        assert_eq!(keys(again), keys(plan.cells().collect()), "in the order that was drawn");
    }

    #[test]
    fn a_rate_is_found_again_if_all_cells_of_its_case_are_measured_again() {
        let mut plan = RunPlan::example();
        let found = CommonRate { rate: 100.0, origin: String::new() };
        plan.rates = ["short", "long"].map(|case| (case.to_owned(), found.clone())).into();
        let done: Vec<CellResult> = plan
            .cells()
            .filter(|cell| cell.case.name == "short" && cell.round == 1 || cell.target.name != "b")
            .map(result)
            .collect();
        plan.forget_rates(&done, |target| target.name != "b");
        assert_eq!(plan.rates.len(), 2, "nothing is measured again without b");
        plan.forget_rates(&done, |_| true);
        assert_eq!(plan.rates.keys().collect::<Vec<_>>(), ["short"], "of long every round lacks b");
    }
}
