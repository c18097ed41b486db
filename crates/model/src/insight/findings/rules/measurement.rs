//! Findings about the measurement itself.

use super::rule::{FindingContext, HysteresisLimit, Rule};
use crate::insight::shares::{out_of, percent, share};
use crate::runs::findings::{FindingText, Severity};
use records::metrics::LoadCounter;
use records::text::quantity::counted;

pub(super) const RECORDS_LOST: Rule =
    Rule { id: "records-lost", judge: records_lost, text: records_lost_text };
pub(super) const LOAD_LATE: Rule = Rule { id: "load-late", judge: load_late, text: load_late_text };

/// Share of requests that the generator started late: above it, latencies are partly its own.
const LATE: &[(Severity, HysteresisLimit)] = &[(Severity::Warning, HysteresisLimit::at(0.01))];
const LATE_MIN: f64 = 10.0;

fn records_lost(context: &FindingContext<'_>) -> Option<Severity> {
    (context.minute().records_lost > 0).then_some(Severity::Warning)
}

fn records_lost_text(context: &FindingContext<'_>) -> FindingText {
    let (run, health) = (context.run, context.run.health());
    let text = FindingText::new(format!(
        "{} lost in the last minute: figures have gaps",
        counted(context.minute().records_lost, "record")
    ));
    let causes = [
        ("records missing between those read, so far", run.reading().lost()),
        ("given up, so far", health.dropped_total),
        ("refused by the journal and written later, so far", health.refused_total),
        (
            "messages that journald's rate limit dropped, so far",
            health.suppressed_total.max(run.reading().suppressed()),
        ),
    ];
    let causes = causes.into_iter().filter(|(_, n)| *n > 0);
    let text = causes.fold(text, |text, (cause, n)| text.figure(cause, n));
    let text = match &*health.error {
        "" => text,
        error => text.whom([error.to_owned()]),
    };
    text.advise("write to a file (--journal file:PATH.journal) or raise RateLimitBurst= in journald.conf")
}

fn late_of(context: &FindingContext<'_>) -> (u64, u64) {
    let load = &context.minute().load;
    // No request of the warm-up counts as late.
    (load[LoadCounter::Late], load[LoadCounter::Scheduled].saturating_sub(load[LoadCounter::Warmup]))
}

fn load_late(context: &FindingContext<'_>) -> Option<Severity> {
    context.graded(late_of(context), LATE_MIN, LATE)
}

fn load_late_text(context: &FindingContext<'_>) -> FindingText {
    let (late, scheduled) = late_of(context);
    let share = percent(share(late, scheduled));
    FindingText::new(format!(
        "The load generator starts {share} of requests late: latencies are partly its own"
    ))
    .figure("late requests, last minute", out_of(late, scheduled))
    .figure("threads of the generator", context.run.load_record().map_or(0, |load| load.threads))
    .advise("lower the rate, give the generator more threads, or run it on another host (tlsdash load)")
    .about("load.rate")
}
