//! Counters of a run's load.

use crate::runs::run::aligned::{AlignedRun, covered_us};
use crate::runs::run::traffic::measured::{MeasuredPart, MeasuredRecord};
use records::kinds::LoadRecord;
use records::metrics::{Counters, LoadCounter, LoadLatency};
use records::values::{EventCounts, Latencies};

impl MeasuredRecord for LoadRecord {
    type Counter = LoadCounter;
    type Latency = LoadLatency;

    fn measured(&self) -> (&Counters<LoadCounter>, &Latencies<LoadLatency>) {
        (&self.counters, &self.latencies)
    }

    fn without_latencies(self) -> Self {
        Self { latencies: Latencies::default(), ..self }
    }

    fn merged(members: &[(AlignedRun<'_>, &MeasuredPart<Self>)]) -> Option<Self> {
        let loads = || members.iter().filter_map(|(run, part)| Some((run, part.record.as_ref()?)));
        let mut sum = loads().next_back()?.1.clone();
        (sum.running, sum.rate, sum.connections, sum.threads) = (false, 0.0, 0, 0);
        (sum.events, sum.counters) = (EventCounts::default(), Counters::default());
        for (run, record) in loads() {
            let Self {
                running,
                rate,
                resume_percent: _,
                connections,
                threads,
                due_us: _,
                sending_us: _,
                measured_us: _,
                events,
                counters,
                latencies: _,
            } = record;
            if run.is_together {
                sum.running |= running;
                sum.rate += rate;
                sum.connections += connections;
                sum.threads += threads;
            }
            sum.events.add(events);
            sum.counters.add(counters);
        }
        // Rates are divided by the time in which any of the runs measured: simultaneous runs add up, successive ones
        // do not.
        let covered = |of: fn(&Self) -> u64| {
            covered_us(loads().map(|(run, record)| {
                let start_us = run.span_us.1.saturating_sub(record.measured_us);
                (start_us, start_us + of(record))
            }))
        };
        (sum.due_us, sum.sending_us) = (covered(|record| record.due_us), covered(|record| record.sending_us));
        sum.measured_us = covered(|record| record.measured_us);
        Some(sum)
    }
}
