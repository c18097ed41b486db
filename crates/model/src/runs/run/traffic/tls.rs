//! TLS counters of a run, besides its proxy records.

use crate::runs::run::aligned::AlignedRun;
use crate::runs::run::traffic::measured::{MeasuredPart, MeasuredRecord};
use records::kinds::TlsRecord;
use records::metrics::{Counters, TlsCounter, TlsLatency};
use records::values::Latencies;

impl MeasuredRecord for TlsRecord {
    type Counter = TlsCounter;
    type Latency = TlsLatency;

    fn measured(&self) -> (&Counters<TlsCounter>, &Latencies<TlsLatency>) {
        (&self.counters, &self.latencies)
    }

    fn without_latencies(self) -> Self {
        Self { latencies: Latencies::default(), ..self }
    }

    fn merged(members: &[(AlignedRun<'_>, &MeasuredPart<Self>)]) -> Option<Self> {
        let all = members.iter().filter_map(|(run, part)| Some((run, part.record.as_ref()?)));
        all.clone().next()?;
        Some(all.fold(Self::default(), |mut sum, (run, record)| {
            let Self { usage_deferred, ages_accepted, ages_expired, counters, latencies: _ } = record;
            if run.is_together {
                sum.usage_deferred += usage_deferred;
            }
            sum.ages_accepted.add(ages_accepted);
            sum.ages_expired.add(ages_expired);
            sum.counters.add(counters);
            sum
        }))
    }
}
