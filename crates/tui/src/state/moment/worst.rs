//! The worst latency of the timeline's class.

use model::runs::{Interval, MetricSeries};
use records::metrics::{LatencyClass, Metric};

use crate::format;
use crate::input::intent::SeekTarget;
use crate::state::State;

impl State {
    /// Says which moment is shown, and what is there.
    pub(super) fn place_words(&self, target: SeekTarget) -> String {
        let at = self.at_past_moment();
        let Some(class) = self.run().map(|run| self.time.class(run)) else { return at };
        match target {
            SeekTarget::Worst => {
                let ms = self.worst().map_or_else(String::new, |worst| format::millis(worst.ns));
                format!("worst {} {ms} ms{at}", class.title())
            }
            SeekTarget::Rise => format!("rise of p99 {}{at}", class.title()),
            _ => at.trim_start().to_owned(),
        }
    }

    /// The interval with the highest latency of the timeline's class.
    pub(super) fn worst(&self) -> Option<WorstInterval> {
        let (run, until_us) = (self.run()?, self.view.past()?.end_us);
        match self.time.class(run) {
            LatencyClass::Proxy(class) => worst(run.proxy()?, class, until_us),
            LatencyClass::Tls(class) => worst(run.tls()?, class, until_us),
            LatencyClass::Http(class) => worst(run.http()?, class, until_us),
            LatencyClass::Load(class) => worst(run.load()?, class, until_us),
        }
    }
}

/// The interval with the highest latency.
pub(super) struct WorstInterval {
    ns: u64,
    pub(super) end_us: u64,
    /// The moment that decides where it belongs.
    pub(super) place_us: u64,
}

fn worst<C: Metric, L: Metric>(
    series: &MetricSeries<C, L>,
    class: L,
    until_us: u64,
) -> Option<WorstInterval> {
    let known = series.timeline().filter(|interval| interval.end_us <= until_us);
    let of = |interval: &Interval<C, L>| WorstInterval {
        ns: interval.latency(class).max_ns(),
        end_us: interval.end_us,
        place_us: interval.place_us(),
    };
    known
        .map(|interval| of(interval))
        .max_by_key(|worst| (worst.ns, worst.end_us))
        .filter(|worst| worst.ns > 0)
}
