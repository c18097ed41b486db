//! The measurement's own health.

use super::sight::{HysteresisLimit, Sight};
use super::{Rule, Severity, Told};
use crate::insight::{counted, percent, share};
use crate::metrics::LoadCounter;

pub(super) const RECORDS_LOST: Rule =
    Rule { id: "records-lost", judge: records_lost, tell: tell_records_lost };
pub(super) const LOAD_LATE: Rule = Rule { id: "load-late", judge: load_late, tell: tell_load_late };

/// Share of requests that the generator started late: above it, latencies are partly its own.
const LATE: &[(Severity, HysteresisLimit)] = &[(Severity::Warning, HysteresisLimit::at(0.01))];
const LATE_MIN: f64 = 10.0;

fn records_lost(sight: &Sight<'_>) -> Option<Severity> {
    (sight.minute().records_lost > 0).then_some(Severity::Warning)
}

fn tell_records_lost(sight: &Sight<'_>) -> Told {
    let (run, health) = (sight.run, sight.run.health());
    let told = Told::new(format!(
        "{} lost in the last minute: figures have gaps",
        counted(sight.minute().records_lost, "record")
    ));
    let causes = [
        ("records missing between those read, so far", run.reading().lost()),
        ("refused by the journal, so far", health.refused_total),
        ("given up, so far", health.dropped_total),
        ("dropped by journald's rate limit, so far", health.suppressed_total.max(run.reading().suppressed())),
    ];
    let causes = causes.into_iter().filter(|(_, n)| *n > 0);
    let told = causes.fold(told, |told, (cause, n)| told.figure(cause, n));
    let told = match &*health.error {
        "" => told,
        error => told.whom([error.to_owned()]),
    };
    told.advise("write to a file (--journal file:PATH.journal) or raise RateLimitBurst= in journald.conf")
}

fn late_of(sight: &Sight<'_>) -> (u64, u64) {
    let load = &sight.minute().load;
    (load[LoadCounter::Late], load[LoadCounter::Scheduled])
}

fn load_late(sight: &Sight<'_>) -> Option<Severity> {
    sight.graded(late_of(sight), LATE_MIN, LATE)
}

fn tell_load_late(sight: &Sight<'_>) -> Told {
    let (late, scheduled) = late_of(sight);
    let share = percent(share(late, scheduled));
    Told::new(format!("The load generator starts {share} of requests late: latencies are partly its own"))
        .figure("late requests, last minute", format!("{late} of {scheduled}"))
        .figure("threads of the generator", sight.run.load_record().map_or(0, |load| load.threads))
        .advise("lower the rate, give the generator more threads, or run it on another host (tlsdash load)")
        .about("load.rate")
}
