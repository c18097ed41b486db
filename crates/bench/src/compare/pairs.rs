//! The cells of a target in a case by round, and their figures beside those of the baseline's cells of the same rounds.

use std::collections::{BTreeMap, BTreeSet};

use experiment::{Ratio, median};

use super::figure::{CellFigure, Comparability, RATE_ACHIEVED, USAGE_FIGURES};
use super::{CellFigureComparison, Remark, RemarkWeight};
use crate::results::{CellResult, Doubt, DoubtScope};

/// Latencies are compared if the achieved rates differ by no more than this share.
const RATE_TOLERANCE: f64 = 0.02;
/// The fewest pairs that have an interval.
const PAIRS_MIN: usize = 2;

/// The cells of a target in a case.
#[derive(Debug)]
pub(crate) struct CellsByRound<'a>(BTreeMap<u32, &'a CellResult>);

/// The figures that any of these cells has, those of the processes first.
pub(crate) fn figures_of(cells: &[&CellResult]) -> Vec<CellFigure> {
    let usage = USAGE_FIGURES.iter().map(CellFigure::Usage);
    let usage = usage.filter(|figure| cells.iter().any(|cell| figure.value(cell).is_some()));
    let names: BTreeSet<&str> =
        cells.iter().flat_map(|cell| cell.figures.keys()).map(String::as_str).collect();
    let load = names.into_iter().filter_map(|name| format!("load.{name}").parse().ok());
    usage.chain(load).collect()
}

impl<'a> CellsByRound<'a> {
    pub(crate) fn new(cells: &'a [CellResult], case: &str, target: &str) -> Self {
        let of_both = cells.iter().filter(|cell| cell.case == case && cell.target == target);
        Self(of_both.map(|cell| (cell.round, cell)).collect())
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &'a CellResult> + Clone {
        self.0.values().copied()
    }

    /// A figure over all rounds, and its ratio to the baseline, if that is another target; `None` if no cell has it.
    pub(crate) fn compare(
        &self,
        figure: &CellFigure,
        baseline: Option<&Self>,
    ) -> Option<CellFigureComparison> {
        let values_of = |accept: &dyn Fn(&CellResult) -> bool| -> Vec<f64> {
            self.all().filter(|cell| accept(cell)).filter_map(|cell| figure.value(cell)).collect()
        };
        let usable = values_of(&|cell| is_usable(cell, figure.comparability()));
        let is_doubtful = usable.is_empty();
        let values = if is_doubtful { values_of(&|_| true) } else { usable };
        if values.is_empty() {
            return None;
        }
        let compared = baseline.map(|baseline| self.pairs(figure, baseline));
        let compared = compared.map(|pairs| pairs.map(|pairs| Ratio::of_pairs(&pairs)));
        Some(CellFigureComparison {
            name: figure.name(),
            unit: figure.unit(),
            median: median(values.iter().copied()),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            is_doubtful,
            ratio: compared.as_ref().and_then(|compared| compared.as_ref().ok().copied()),
            withheld: compared.and_then(Result::err),
        })
    }

    /// A figure of the baseline and of the target in each round in which both may be compared, at least two, or the
    /// reason why there are no more.
    pub(crate) fn pairs(&self, figure: &CellFigure, baseline: &Self) -> Result<Vec<(f64, f64)>, String> {
        if figure.comparability() == Comparability::Uncorrected {
            return Err("it is not corrected for coordinated omission".to_owned());
        }
        let mut pairs = Vec::new();
        let mut obstacle = None;
        for (round, cell) in &self.0 {
            let Some(other) = baseline.0.get(round) else { continue };
            match pair(figure, other, cell) {
                Ok(pair) => pairs.push(pair),
                Err(reason) => drop(obstacle.get_or_insert(reason)),
            }
        }
        match (pairs.len(), obstacle) {
            (PAIRS_MIN.., _) => Ok(pairs),
            (_, Some(reason)) => Err(reason),
            (pairs, None) => Err(format!("{pairs} of the {PAIRS_MIN} rounds that an interval takes")),
        }
    }

    /// The number of rounds in which a figure may be used.
    pub(crate) fn usable_rounds(&self, figure: &CellFigure) -> usize {
        let is_usable = |cell: &&CellResult| is_usable(cell, figure.comparability());
        self.all().filter(is_usable).filter(|cell| figure.value(cell).is_some()).count()
    }

    /// The negotiated parameters, in words.
    pub(crate) fn negotiated(&self) -> BTreeSet<String> {
        self.all().filter_map(|cell| cell.negotiated.as_ref()).map(ToString::to_string).collect()
    }

    /// Failures and doubts, each with its rounds, in the order in which they came up.
    pub(crate) fn remarks(&self, primary: Option<&CellFigure>) -> Vec<Remark> {
        let primary = primary.map(|figure| doubt_scope(figure.comparability()));
        let weight = |doubt: &Doubt| match doubt.spoils {
            DoubtScope::All => RemarkWeight::VoidsPrimary,
            scope if Some(scope) == primary => RemarkWeight::VoidsPrimary,
            _ => RemarkWeight::VoidsOthers,
        };
        let mut remarks: Vec<Remark> = Vec::new();
        for cell in self.all() {
            let failure = cell.failure.iter().map(|text| (text, RemarkWeight::VoidsPrimary));
            let doubts = cell.doubts.iter().map(|doubt| (&doubt.reason, weight(doubt)));
            let others = cell.remarks.iter().map(|text| (text, RemarkWeight::Qualifies));
            for (text, weight) in failure.chain(doubts).chain(others) {
                match remarks.iter_mut().find(|remark| remark.text == *text) {
                    Some(remark) if remark.rounds.last() == Some(&cell.round) => {}
                    Some(remark) => remark.rounds.push(cell.round),
                    None => remarks.push(Remark { text: text.clone(), rounds: vec![cell.round], weight }),
                }
            }
        }
        remarks
    }

    /// The latency at each percentile, the median of usable rounds.
    pub(crate) fn response_curve(&self) -> Vec<(f64, f64)> {
        let usable: Vec<&CellResult> =
            self.all().filter(|cell| is_usable(cell, Comparability::Latency)).collect();
        let Some(first) = usable.first() else { return Vec::new() };
        let at = |percentile: f64| {
            let find = |cell: &&CellResult| {
                cell.response_curve
                    .iter()
                    .find(|(known, _)| (known - percentile).abs() < 1e-9)
                    .map(|(_, us)| *us as f64)
            };
            median(usable.iter().filter_map(find))
        };
        first.response_curve.iter().map(|(percentile, _)| (*percentile, at(*percentile))).collect()
    }
}

/// The figure of the baseline's cell and of the target's, or why they are not comparable.
fn pair(figure: &CellFigure, baseline: &CellResult, target: &CellResult) -> Result<(f64, f64), String> {
    let comparability = figure.comparability();
    for cell in [baseline, target] {
        if let Some(reason) = cell.obstacle(doubt_scope(comparability)) {
            return Err(format!("{}: {reason}", cell.target));
        }
    }
    if comparability == Comparability::Latency {
        at_same_rate(baseline, target)?;
    }
    let value = |cell: &CellResult| {
        let value = figure.value(cell).ok_or_else(|| format!("{figure} of {} is unknown", cell.target))?;
        if value > 0.0 { Ok(value) } else { Err(format!("{figure} of {} is 0", cell.target)) }
    };
    Ok((value(baseline)?, value(target)?))
}

/// Whether a figure of the cell may be used.
fn is_usable(cell: &CellResult, comparability: Comparability) -> bool {
    cell.obstacle(doubt_scope(comparability)).is_none()
}

/// The kinds of figures that a doubt must affect to matter.
fn doubt_scope(comparability: Comparability) -> DoubtScope {
    match comparability {
        Comparability::Usage => DoubtScope::Usage,
        Comparability::Rate | Comparability::Latency | Comparability::Uncorrected => {
            DoubtScope::RateAndLatency
        }
    }
}

/// Latency depends on the rate: a slower target that is asked less often may answer faster.
fn at_same_rate(baseline: &CellResult, target: &CellResult) -> Result<(), String> {
    if baseline.rate.is_none() || target.rate.is_none() {
        return Err("in a closed loop each target sets its own rate".to_owned());
    }
    let achieved = |cell: &CellResult| cell.figures.get(RATE_ACHIEVED).copied();
    let (Some(one), Some(other)) = (achieved(baseline), achieved(target)) else {
        return Err("the achieved rate is unknown".to_owned());
    };
    if (one / other - 1.0).abs() <= RATE_TOLERANCE {
        return Ok(());
    }
    Err(format!("the achieved rates differ: {one:.0}/s and {other:.0}/s"))
}
