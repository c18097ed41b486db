//! Words that every output uses.

use model::figures::FigureUnit;
use records::text::quantity;

use crate::compare::{BenchComparison, CaseComparison, CellFigureComparison, TargetComparison};
use crate::output::column::ColumnFormat;
use crate::scenario::Question;

/// Shown for an unknown value.
pub const UNKNOWN: &str = "–";

pub fn question(case: &CaseComparison) -> String {
    let rate = case.rate.map(|rate| {
        let format = ColumnFormat::of([rate], FigureUnit::PerSecond);
        format!(" at {}/s", format.show(rate))
    });
    match case.question {
        Question::Cost => format!("CPU time per request{}", rate.unwrap_or_default()),
        Question::Capacity => {
            let bound = case.bound.map(|bound| {
                let limit = FigureUnit::Micros.show(bound.limit_us as f64);
                format!(" with p{} below {limit}", bound.percentile)
            });
            format!("most requests per second{}", bound.unwrap_or_default())
        }
        Question::Load => {
            format!("CPU time per request{}", rate.unwrap_or_else(|| " in a closed loop".to_owned()))
        }
    }
}

/// How the verdicts were reached.
pub fn method(comparison: &BenchComparison) -> String {
    let BenchComparison { rounds, baseline, primary_comparisons, .. } = comparison;
    format!(
        "{}; ratios to {baseline}, each with its own 95 % interval; verdicts with an error rate of 5 % over {} (Holm)",
        quantity::counted(u64::from(*rounds), "round"),
        quantity::counted(*primary_comparisons as u64, "comparison"),
    )
}

pub fn interval(figure: &CellFigureComparison) -> String {
    figure.ratio.map_or_else(String::new, |ratio| format!("{:.3} to {:.3}", ratio.low, ratio.high))
}

/// The verdict's word; for the baseline, a word that says so.
pub fn verdict(target: &TargetComparison, baseline: &str) -> String {
    match &target.verdict {
        _ if target.name == baseline => "baseline".to_owned(),
        Some(verdict) => verdict.outcome.to_string(),
        None => "no verdict asked".to_owned(),
    }
}

/// Remarks on a target: why there is no verdict, missing rounds, doubts.
pub fn remarks(case: &CaseComparison, target: &TargetComparison) -> Vec<String> {
    let mut texts = Vec::new();
    let reason = target.verdict.as_ref().map_or("", |verdict| &verdict.reason);
    if !reason.is_empty() {
        texts.push(format!("{}: {reason}", verdict(target, "")));
    } else if let Some(reason) = target.figure(&case.figure).and_then(|figure| figure.withheld.as_ref()) {
        texts.push(format!("no ratio: {reason}"));
    }
    if target.rounds_used < target.rounds_run {
        texts.push(format!("{} of {} rounds used", target.rounds_used, target.rounds_run));
    }
    texts.extend(target.remarks.iter().filter(|remark| remark.text != reason).map(|remark| {
        let which = which_rounds(&remark.rounds, target.rounds_run);
        format!("{which}: {}", remark.text)
    }));
    texts
}

/// The rounds in words, such as `rounds 1, 3–5`.
fn which_rounds(rounds: &[u32], all: u32) -> String {
    if rounds.len() == all as usize && all > 1 {
        return "every round".to_owned();
    }
    let follows = |a: &u32, b: &u32| a + 1 == *b;
    let ranges: Vec<String> = rounds
        .chunk_by(follows)
        .map(|range| match range {
            [first, .., last] => format!("{first}–{last}"),
            _ => range.iter().map(ToString::to_string).collect(),
        })
        .collect();
    format!("round{} {}", if rounds.len() == 1 { "" } else { "s" }, ranges.join(", "))
}

/// The worst state of the machine, in words.
pub fn machine(comparison: &BenchComparison) -> String {
    let machine = &comparison.machine;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let delay = machine.run_queue_delay.map(percent);
    let delay = delay.map(|delay| format!("; the target waited for a core for {delay} of its CPU time"));
    let throttled = if machine.is_throttled { "; the cores' clock was lowered" } else { "" };
    format!(
        "of the cores' time at worst {} stolen by a hypervisor, {} used by other processes{}{throttled}",
        percent(machine.steal),
        percent(machine.other),
        delay.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_follow_each_other_are_a_range() {
        assert_eq!(which_rounds(&[1, 3, 4, 5, 8], 8), "rounds 1, 3–5, 8");
        assert_eq!(which_rounds(&[2], 6), "round 2");
        assert_eq!(which_rounds(&[1, 2, 3], 3), "every round");
    }
}
