//! The writer's counts of its losses.

use super::merged::AlignedRun;
use crate::record::HealthRecord;

/// The losses that the writers of several runs counted.
pub(super) fn merged(members: &[AlignedRun<'_>]) -> HealthRecord {
    let mut sum = HealthRecord::default();
    for member in members {
        let HealthRecord {
            refused_total,
            merged_total,
            waits_total,
            dropped_total,
            suppressed_total,
            over_budget_total,
            clock_step_us,
            error,
        } = &member.run.health;
        sum.refused_total += refused_total;
        sum.merged_total += merged_total;
        sum.waits_total += waits_total;
        sum.dropped_total += dropped_total;
        sum.suppressed_total += suppressed_total;
        sum.over_budget_total += over_budget_total;
        if clock_step_us.unsigned_abs() > sum.clock_step_us.unsigned_abs() {
            sum.clock_step_us = *clock_step_us;
        }
        if sum.error.is_empty() {
            sum.error.clone_from(error);
        }
    }
    sum
}

impl HealthRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self {
            refused_total,
            merged_total,
            waits_total,
            dropped_total,
            suppressed_total,
            over_budget_total,
            clock_step_us: _,
            error: _,
        } = self;
        for (total, before) in [
            (refused_total, before.refused_total),
            (merged_total, before.merged_total),
            (waits_total, before.waits_total),
            (dropped_total, before.dropped_total),
            (suppressed_total, before.suppressed_total),
            (over_budget_total, before.over_budget_total),
        ] {
            *total = total.saturating_sub(before);
        }
    }
}
