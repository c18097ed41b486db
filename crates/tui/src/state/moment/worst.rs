//! The worst latency of the timeline's class, and the request or the client that records name for it.

use model::runs::{ClientStats, Interval, MetricSeries, RecordedRequest};
use records::kinds::RequestRecord;
use records::metrics::{HttpLatency, LatencyClass, Metric, ProxyLatency};

use crate::input::intent::SeekTarget;
use crate::screens::requests::model::target;
use crate::state::State;
use crate::theme::format;

impl State {
    /// Says which moment is shown, and what is there.
    pub(super) fn place_words(&self, target: SeekTarget) -> String {
        let at = self.at_past_moment();
        let Some(class) = self.run().map(|run| self.time.class(run)) else { return at };
        match target {
            SeekTarget::Worst => {
                let worst = self.worst();
                let ms = worst.as_ref().map_or_else(String::new, |worst| format::millis(worst.ns));
                let of = worst.and_then(|worst| self.slowest_words(class, &worst)).unwrap_or_default();
                format!("worst {} {ms} ms{of}{at}", class.title())
            }
            SeekTarget::Rise => format!("rise of p99 {}{at}", class.title()),
            _ => at.trim_start().to_owned(),
        }
    }

    /// Names the request of the worst latency, or its client: `: GET /slow of 10.0.0.12`; `None` if no record has it.
    fn slowest_words(&self, class: LatencyClass, worst: &WorstInterval) -> Option<String> {
        let run = self.run()?;
        match class {
            LatencyClass::Http(class) => {
                let requests = run.requests().slowest(worst.end_us.saturating_sub(1), worst.end_us);
                // Records count microseconds.
                let is_it = |recorded: &&&RecordedRequest| {
                    time_us(class, &recorded.request).abs_diff(worst.ns / 1_000) <= 1
                };
                let request = &requests.iter().find(is_it)?.request;
                Some(format!(": {} of {}", target(request), request.client))
            }
            LatencyClass::Proxy(ProxyLatency::Exchange) => {
                // The slowest exchange of the run is the slowest of its client. Coarse times may be those of several.
                let has_it = |client: &&ClientStats| client.exchange().max_ns() == worst.ns;
                let mut clients = run.clients().iter().filter(has_it);
                let client = clients.next().filter(|_| clients.next().is_none())?;
                Some(format!(" of client {}", client.id))
            }
            _ => None,
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

/// What a request took of a latency class, in microseconds.
fn time_us(class: HttpLatency, request: &RequestRecord) -> u64 {
    match class {
        HttpLatency::Request | HttpLatency::Request1 | HttpLatency::Request2 => request.duration_us,
        HttpLatency::FirstByte | HttpLatency::FirstByte1 | HttpLatency::FirstByte2 => request.first_byte_us,
        HttpLatency::Upstream => request.upstream_us,
        HttpLatency::Queue => request.queue_us,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use records::kinds::Body;

    use crate::app::testing::{TestDashboard, options};

    #[test]
    fn the_worst_latency_is_said_with_its_request_or_its_client() {
        let footer = |stage: &mut TestDashboard| stage.screen(160, 48).lines().last().unwrap().to_owned();
        let worst_ns = |stage: &TestDashboard, class: &str| {
            let latencies = &stage.state.figures().unwrap().latencies;
            latencies.iter().find(|row| row.class.title() == class).unwrap().max_ns.unwrap()
        };
        let mut stage = TestDashboard::live_http(options(), 3);
        let (us, mut records) = (worst_ns(&stage, "HTTP first byte") / 1_000, stage.run.second());
        for record in &mut records {
            if let Body::Request(request) = &mut record.body {
                request.first_byte_us = us;
            }
        }
        stage.wait(1);
        stage.read(records);
        stage.press('w');
        let request =
            "worst HTTP first byte 13.0 ms: GET /api/reports/2026 of 10.0.0.23 at 12:04:04Z, +00:04";
        assert!(footer(&mut stage).starts_with(request), "{}", footer(&mut stage));

        let mut stage = TestDashboard::live(options(), 3);
        let (slowest, mut records) = (worst_ns(&stage, "exchange"), stage.run.second());
        for record in &mut records {
            if let Body::Client(client) = &mut record.body
                && client.client.to_string() == "10.0.0.17"
            {
                client.exchange.record(Duration::from_nanos(slowest));
            }
        }
        stage.wait(1);
        stage.read(records);
        stage.press('w');
        assert!(footer(&mut stage).starts_with("worst response 15.6 ms at 12:04:04Z, +00:04  "));
        stage.press('f');
        stage.press('f');
        stage.press('w');
        let client = "worst exchange 15.4 ms of client 10.0.0.17 at 12:04:04Z, +00:04";
        assert!(footer(&mut stage).starts_with(client), "{}", footer(&mut stage));
    }
}
