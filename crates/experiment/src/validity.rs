//! Checks whether something other than the two values shaped the figures.

use model::figures::{BUSY_MAX, LATE_MAX, Totals};
use records::kinds::Arm;
use records::metrics::{CpuGroup, LoadCounter};

use crate::comparable_figure::ComparableFigure;

/// The largest share of incomplete pairs.
const LEFT_OUT_MAX: f64 = 0.25;

/// Observations that decide whether a stage is valid.
#[derive(Clone, Debug, Default)]
pub(crate) struct ValidityChecks {
    /// Totals over the blocks of each arm.
    totals: [Totals; 2],
    load_threads: u64,
    pairs: u32,
    pairs_left_out: u32,
    disturbance: Option<String>,
}

impl ValidityChecks {
    pub(crate) fn add_block(&mut self, arm: Arm, totals: &Totals, load_threads: u64) {
        let sum = &mut self.totals[arm as usize];
        sum.span_us += totals.span_us;
        sum.cpu.add(&totals.cpu);
        sum.load.add(&totals.load);
        self.load_threads = self.load_threads.max(load_threads);
    }

    pub(crate) fn count_pair(&mut self, is_left_out: bool) {
        self.pairs += 1;
        self.pairs_left_out += u32::from(is_left_out);
    }

    pub(crate) fn note_disturbance(&mut self, what: String) {
        self.disturbance.get_or_insert(what);
    }

    /// Why a figure is not comparable; `None` if it is.
    pub(crate) fn reason(&self, metric: &ComparableFigure) -> Option<String> {
        let generator_bound = || metric.is_of_generator().then(|| self.generator_bound()).flatten();
        self.disturbance.clone().or_else(generator_bound).or_else(|| self.losses())
    }

    fn generator_bound(&self) -> Option<String> {
        self.totals.iter().zip([Arm::A, Arm::B]).find_map(|(totals, arm)| {
            let could_us = totals.span_us as f64 * self.load_threads as f64;
            let busy = totals.cpu[CpuGroup::Load] as f64 / could_us;
            if could_us > 0.0 && busy > BUSY_MAX {
                let busy = busy * 100.0;
                return Some(format!(
                    "generator-bound: its threads were busy {busy:.0} % of the time under {arm}; offer less, or add threads"
                ));
            }
            let scheduled = totals.load[LoadCounter::Scheduled];
            let late = totals.load[LoadCounter::Late] as f64 / scheduled as f64;
            let late = Some(late).filter(|late| scheduled > 0 && *late > LATE_MAX)? * 100.0;
            Some(format!(
                "generator-bound: it took on {late:.1} % of the requests more than 1 ms late under {arm}; offer less, or add \
                 threads"
            ))
        })
    }

    fn losses(&self) -> Option<String> {
        let Self { pairs, pairs_left_out, .. } = self;
        let is_too_much = f64::from(*pairs_left_out) > f64::from(*pairs) * LEFT_OUT_MAX;
        is_too_much.then(|| {
            format!("losses: {pairs_left_out} of {pairs} pairs lack figures; leave the process more CPU time")
        })
    }
}
