//! The writer's counts of its losses.

use records::kinds::HealthRecord;

/// The losses that the writers of several runs counted.
pub(super) fn merged<'a>(all: impl Iterator<Item = &'a HealthRecord>) -> HealthRecord {
    let mut sum = HealthRecord::default();
    for health in all {
        let HealthRecord {
            refused_total,
            merged_total,
            waits_total,
            dropped_total,
            suppressed_total,
            over_budget_total,
            clock_step_us,
            clock_steps_total,
            error,
            upload_waiting,
            upload_lost_total,
            upload_failure,
        } = health;
        sum.refused_total += refused_total;
        sum.merged_total += merged_total;
        sum.waits_total += waits_total;
        sum.dropped_total += dropped_total;
        sum.suppressed_total += suppressed_total;
        sum.over_budget_total += over_budget_total;
        sum.upload_waiting += upload_waiting;
        sum.upload_lost_total += upload_lost_total;
        let jumped = |us: i64, steps: u64| (us.unsigned_abs(), steps);
        if jumped(*clock_step_us, *clock_steps_total) > jumped(sum.clock_step_us, sum.clock_steps_total) {
            (sum.clock_step_us, sum.clock_steps_total) = (*clock_step_us, *clock_steps_total);
        }
        for (first, text) in [(&mut sum.error, error), (&mut sum.upload_failure, upload_failure)] {
            if first.is_empty() {
                first.clone_from(text);
            }
        }
    }
    sum
}
