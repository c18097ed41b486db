//! Words that every output uses.

use std::time::Duration;

use experiment::Ratio;
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

pub(crate) fn minutes(length: Duration) -> String {
    match length.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
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

pub fn ratio(ratio: f64) -> String {
    quantity::ratio(ratio, 3)
}

pub fn interval(figure: &CellFigureComparison) -> String {
    figure
        .ratio
        .map_or_else(String::new, |Ratio { low, high, .. }| format!("{} to {}", ratio(low), ratio(high)))
}

/// The verdict's word; for the baseline, a word that says so.
pub fn verdict(target: &TargetComparison, baseline: &str) -> String {
    match &target.verdict {
        _ if target.name == baseline => "baseline".to_owned(),
        Some(verdict) => verdict.outcome.to_string(),
        None => "no verdict asked".to_owned(),
    }
}

/// The worst state of the machine, in words.
pub fn machine(comparison: &BenchComparison) -> String {
    let machine = &comparison.machine;
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let delay = machine.run_queue_delay.map(|share| match share {
        10.0.. => format!("{} its", quantity::multiple(share)),
        _ => format!("{} of its", percent(share)),
    });
    let delay = delay.map(|delay| format!("; the target waited for a core for {delay} CPU time"));
    let throttled = if machine.is_throttled { "; the cores' clock was lowered" } else { "" };
    format!(
        "of the cores' time at worst {} stolen by a hypervisor, {} used by other processes{}{throttled}",
        percent(machine.steal),
        percent(machine.other),
        delay.unwrap_or_default()
    )
}
